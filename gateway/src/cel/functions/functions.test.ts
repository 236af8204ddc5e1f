import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../../test/support/time-bound.ts'
import { compileCel } from '../cel.ts'
import { CelEvaluationError } from '../failure.ts'
import { gatewayFunctions } from './functions.ts'

const roots = new Set(['request', 'request.body', 'response', 'response.body', 'jwt', 'v', 'w', 'n'])

function evaluate(source: string, variables: object = {}): unknown {
  const compiled = compileCel(source, roots)
  if (compiled.kind === 'issue') throw new Error(compiled.message)
  expect(compiled.program.engine).toBe('closures')
  return compiled.program.evaluate(variables)
}

const headers = {
  authorization: 'Bearer secret',
  accept: 'a/b, c/d',
  cookie: 'one=1; session="x y"; one=2',
  'x-list': ['a,b', 'c'],
}
const request = {
  method: 'GET',
  scheme: 'http',
  host: 'example.com',
  path: '/api',
  query: '?foo=bar&foo=baz&zap=zip',
  headers,
}

describe('functions of the gateway', () => {
  it.each<[string, unknown]>([
    [`json('{"hi":1}').hi`, 1],
    [`json('[1, 2.5, null, true]')`, [1, 2.5, null, true]],
    [`json(b'"a"')`, 'a'],
    [`json('9007199254740993') + 1`, 9007199254740994n],
    [`json('{"a": 9007199254740993}').a - 1`, 9007199254740992n],
    [`jsonField('{"hi":1}', "hi")`, 1],
    [`toJson({"a": [1, 2.0, b"hi", null], "b": "é"})`, '{"a":[1,2,"aGk=",null],"b":"é"}'],
    ['toJson(9007199254740993)', '9007199254740993'],
    ['toJson(timestamp(1))', '"1970-01-01T00:00:01Z"'],
    ['unvalidatedJwtPayload("eyJhbGciOiJub25lIn0.eyJkYXRhIjoifn5-In0.").data', '~~~'],
    ['base64.encode("hello")', 'aGVsbG8='],
    ['base64Encode(b"hello")', 'aGVsbG8='],
    ['string(base64.decode("Zg=="))', 'f'],
    ['string(base64.decode("Zg"))', 'f'],
    ['base64.decode("")', Buffer.from('')],
    ['url.encode("hello world/?x=1&y=2")', 'hello%20world%2F%3Fx%3D1%26y%3D2'],
    ['url.encode("abc-._~!\'()*é")', 'abc-._~%21%27%28%29%2A%C3%A9'],
    ['url.decode("hello%20world%2f+%zz%")', 'hello world/+%zz%'],
    [
      'form.decode("client_id=abc&scope=openid+profile&a=1&a=2")',
      { client_id: 'abc', scope: 'openid profile', a: ['1', '2'] },
    ],
    ['form.decode("?a=1")', { '?a': '1' }],
    ['form.encode({"b": ["1", "2"], "a": "x y", "c": null})', 'a=x+y&b=1&b=2'],
    ['sha1.encode("hello")', 'aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d'],
    ['sha256.encode(b"hello")', '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'],
    ['md5.encode("hello")', '5d41402abc4b2a76b9719d911017c592'],
    ['{"a": 2, "k": "v"}.merge({"a": 3})', { a: 3, k: 'v' }],
    ['{"a": 1, "b": 2}.mapValues(v, v * 2)', { a: 2, b: 4 }],
    ['{"a": 1, "secret": 9}.filterKeys(k, k != "secret").mapValues(v, v * 2)', { a: 2 }],
    ['v.filterKeys(k, k.startsWith("x"))', { x: 1 }],
    ['[1, 2].with(a, a + a)', [1, 2, 1, 2]],
    ['1.with(a, 2.with(b, a.with(a, a + b) + a))', 4],
    ['v.x.with(v, v + 1)', 2],
    ['[1, 2].map(x, x.with(y, y + n))', [4, 5]],
    ['coalesce(fail("bad"), 1 / 0, "fallback")', 'fallback'],
    ['default(json("{}").a, json("x"), 1) == 1 || true', undefined],
    ['"/id/1234/data/id/5/".regexReplace("/id/[0-9]*/", "/id/{id}/")', '/id/{id}/data/id/5/'],
    ['"blah id=1234 bar".regexReplace("id=(.+?) ", "[$1] ")', 'blah [1234] bar'],
    [`"a-b".regexReplace("(?P<x>a)-(b)", "$\{x}.$2.$$.$9.$x_")`, 'a.b.$..'],
    ['"ab".regexReplace("a" + "b", "12")', '12'],
    ['uuid().matches("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")', true],
    ['uuid() != uuid()', true],
    ['random() >= 0.0 && random() < 1.0', true],
    ['max(1, 3, 2) + min([4, 5])', 7],
    ['flatten({"a": 1})', { a: 1 }],
  ])('%s', (source, expected) => {
    if (expected === undefined) expect(() => evaluate(source)).toThrow()
    else expect(evaluate(source, { v: { x: 1, y: 2 }, n: 3 })).toEqual(expected)
  })

  it.each<[string, unknown]>([
    ['math.least(1)', 1],
    ['math.least([-42.0, -21.5, -100.0])', -100],
    ['math.least(1.5, -2) == -2', true],
    ['math.least(1u, -2) == -2', true],
    ['math.greatest(2u, 2.5) == 2.5', true],
    [
      '[math.ceil(1.2), math.floor(-1.2), math.round(-1.5), math.round(0.49), math.trunc(-1.3)]',
      [2, -2, -2, 0, -1],
    ],
    ['math.isNaN(math.round(0.0 / 0.0)) && math.isInf(1.0 / 0.0) && math.isFinite(1.2)', true],
    ['[math.abs(-1), math.abs(-1.5), math.sign(-42), math.sign(0.0), math.sqrt(81)]', [1, 1.5, -1, 0, 9]],
    ['math.bitOr(1u, 2u) == 3u && math.bitOr(-2, -4) == -2', true],
    ['math.bitAnd(-3, -5) == -7 && math.bitXor(1, 3) == 2 && math.bitNot(1) == -2', true],
    ['math.bitNot(0u) == 18446744073709551615u', true],
    ['base64.encode(math.bitAnd(base64.decode("BQ=="), base64.decode("Aw==")))', 'AQ=='],
    ['base64.encode(math.bitAnd(base64.decode("AAE="), base64.decode("AQ==")))', 'AAE='],
    ['math.bitAnd(0x4, base64.decode("AQAF"))', 4],
    ['math.bitAnd(0x4u, base64.decode("BQ==")) == 4u', true],
    ['[math.bitShiftLeft(1, 2), math.bitShiftLeft(-1, 2), math.bitShiftRight(1024, 2)]', [4, -4, 256]],
    ['math.bitShiftRight(-1024, 3)', 2305843009213693824n],
    ['math.bitShiftLeft(1u, 200) == 0u && math.bitShiftRight(-1024, 64) == 0', true],
  ])('%s', (source, expected) => {
    expect(evaluate(source)).toEqual(expected)
  })

  it.each([
    `json('{"hi":1}').unknown`,
    `json('{"a":1,"a":2}')`,
    `json('{"a":{"b":1,"\\\\u0062":2}}')`,
    'json("")',
    'json("NaN")',
    'json(b"\\xff")',
    'json(1)',
    'json(v)',
    'unvalidatedJwtPayload("not-a-jwt")',
    'unvalidatedJwtPayload("a.b.c")',
    'base64.decode("a b")',
    'base64.decode("Zh==")',
    'base64.decode("Zg=")',
    'base64.decode(1)',
    'url.decode("%FF")',
    'url.encode(1)',
    'form.decode({})',
    'form.encode([])',
    'form.encode({"bad": {}})',
    'form.encode({"bad": 1})',
    'sha1.encode(1)',
    '{"a": 1}.merge(1)',
    '{"a": 1}.filterKeys(k, 42)',
    '[1, 2].filterKeys(k, true)',
    '[1, 2].mapValues(k, k)',
    '{"a": 1}.mapValues(v, v / 0)',
    'fail("x").with(a, 1)',
    'fail("x")',
    'math.greatest([])',
    'math.least("a")',
    'math.abs(-9223372036854775807 - 1)',
    'math.bitShiftLeft(1, -1)',
    'math.bitAnd(1, 2u)',
    'math.bitAnd(-1, base64.decode("BQ=="))',
    `math.bitAnd(base64.decode("${Buffer.alloc(33).toString('base64')}"), b"a")`,
    '"a".regexReplace(1, "")',
    'flatten(1)',
    '"a".cookie("x")',
    '{"a": 1}.raw()',
  ])('%s has no value', (source) => {
    expect(() => evaluate(source, { v: {} })).toThrow(CelEvaluationError)
  })

  it('do not repeat values in their errors', () => {
    const message = (source: string) => {
      try {
        evaluate(source, { v: 'hunter2' })
      } catch (error) {
        return error instanceof Error ? error.message : ''
      }
      return ''
    }
    const calls = gatewayFunctions.filter(({ arity }) => arity > 0)
    for (const { name, isMethod, arity } of calls) {
      const rest = Array.from({ length: arity - 1 }, () => 'v').join(', ')
      const source = isMethod ? `v.${name}(${rest})` : `${name}(${['v', rest].filter(Boolean).join(', ')})`
      if (name !== 'query')
        expect([source, message(source)]).toEqual([source, expect.not.stringContaining('hunter2')])
    }
    for (const source of ['timestamp(v)', 'duration(v)', 'uint(v)', 'v.getFullYear()'])
      expect(message(source)).not.toContain('hunter2')
  })
})

describe('views of headers', () => {
  it.each<[string, unknown]>([
    ['request.headers.redacted().authorization', '<redacted>'],
    ['request.headers.redacted().accept', 'a/b, c/d'],
    ['request.headers["X-List"]', ['a,b', 'c']],
    ['request.headers.raw()["x-list"]', ['a,b', 'c']],
    ['request.headers.raw().accept', ['a/b, c/d']],
    ['request.headers.split()["x-list"]', ['a', 'b', 'c']],
    ['request.headers.split().accept', ['a/b', 'c/d']],
    ['request.headers.join()["x-list"]', 'a,b,c'],
    ['request.headers.redacted().split().authorization', ['<redacted>']],
    ['request.headers.cookie("session")', '"x y"'],
    ['request.headers.cookie("one")', '1'],
    ['default(request.headers.cookie("two"), "none")', 'none'],
    ['size(request.headers.raw())', 4],
  ])('%s', (source, expected) => {
    expect(evaluate(source, { request })).toEqual(expected)
  })
})

describe('query parameters', () => {
  it.each<[string, unknown]>([
    ['request.pathAndQuery.query("foo") == ["bar", "baz"]', true],
    ['request.uri.query("zap")', ['zip']],
    ['request.pathAndQuery.addQuery("foo", "q x")', '/api?foo=bar&foo=baz&zap=zip&foo=q+x'],
    ['request.uri.setQuery("foo", "qux")', 'http://example.com/api?zap=zip&foo=qux'],
    ['request.path.setQuery("a", "1").setQuery("a", "2").addQuery("b", "3")', '/api?a=2&b=3'],
    ['default(request.uri.query("none"), [])', []],
  ])('%s', (source, expected) => {
    expect(evaluate(source, { request })).toEqual(expected)
  })
})

describe('variables()', () => {
  it('contains the variables that have a value, with derived members', () => {
    const variables = { request, jwt: { sub: 'a' }, body: Buffer.from('b'), other: 1 }
    expect(evaluate('variables()', variables)).toMatchObject({
      request: {
        method: 'GET',
        uri: 'http://example.com/api?foo=bar&foo=baz&zap=zip',
        body: Buffer.from('b'),
      },
      jwt: { sub: 'a' },
    })
    expect(evaluate('"other" in variables() || "response" in variables()', variables)).toBe(false)
  })

  it('requires the bodies of both messages', () => {
    const compiled = compileCel('variables()', roots)
    expect(compiled).toMatchObject({ program: { readsBody: true, readsResponseBody: true } })
  })
})

describe('hostile input', () => {
  const anyValue = fc.anything({
    withBigInt: true,
    withUnicodeString: true,
    withTypedArray: true,
    maxDepth: 3,
    values: [fc.string({ unit: 'binary' }), fc.double(), fc.uint8Array(), fc.boolean(), fc.constant(null)],
  })

  it('gives a value or an evaluation error, and always the same one', () => {
    const calls = gatewayFunctions.filter(({ name }) => name !== 'uuid' && name !== 'random')
    fc.assert(
      fc.property(fc.constantFrom(...calls), anyValue, anyValue, ({ name, isMethod, arity }, v, w) => {
        const rest = Array.from({ length: arity - 1 }, () => 'w').join(', ')
        const source = isMethod ? `v.${name}(${rest})` : `${name}(${['v', rest].filter(Boolean).join(', ')})`
        const outcome = () => {
          try {
            return { value: evaluate(source, { v, w }) }
          } catch (error) {
            if (error instanceof CelEvaluationError) return { error: error.message }
            throw error
          }
        }
        expect(outcome()).toEqual(outcome())
      }),
      { numRuns: 3_000 },
    )
  })

  it('preserves texts and bytes through each pair of encodings', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.uint8Array(), (v, w) => {
        expect(evaluate('string(base64.decode(base64.encode(v))) == v', { v })).toBe(true)
        expect(evaluate('base64.decode(base64.encode(w)) == w', { w })).toBe(true)
        expect(evaluate('url.decode(url.encode(v)) == v', { v })).toBe(true)
        expect(evaluate('json(toJson(v)) == v', { v })).toBe(true)
        expect(evaluate('form.decode(form.encode({"k": v})).k == v', { v })).toBe(true)
      }),
    )
  })

  const mebibyte = 1024 * 1024
  it.each([
    ['json(v)', '{"a":{}},'.repeat(3 * mebibyte)],
    ['json(v)', `[${'{},'.repeat(90_000)}{}]`],
    [
      'json(v)',
      `[${Array.from({ length: 16 }, (_, block) => JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (_, key) => [`k${block}_${key}`, 1])))).join(',')}]`,
    ],
    ['json(v)', '['.repeat(mebibyte)],
    ['json(v)', `[${'{},'.repeat(700_000)}{}]`],
    ['json(v)', `{${Array.from({ length: 150_000 }, (_, index) => `"k${index}":1`).join(',')}}`],
    ['form.decode(v)', '&'.repeat(8 * mebibyte)],
    ['form.decode(v)', 'a&'.repeat(60_000)],
    ['form.decode(v)', Array.from({ length: 12_000 }, (_, index) => `k${index}=1`).join('&')],
    ['v.query("a")', `/?${'a&'.repeat(30_000)}`],
    ['v.addQuery(v, v)', '?'.repeat(20_000)],
    ['url.encode(v)', '/'.repeat(1_400_000)],
    ['url.decode(v)', '%41'.repeat(450_000)],
    ['base64.decode(v)', '='.repeat(4 * mebibyte)],
    ['base64.decode(v)', 'a='.repeat(2 * mebibyte)],
    ['sha1.encode(v) + md5.encode(v) + sha256.encode(v)', 'a'.repeat(1_800_000)],
    ['unvalidatedJwtPayload(v)', '.'.repeat(8 * mebibyte)],
    ['v.regexReplace("(a|b|ab)*c", "$1")', 'ab'.repeat(10_000)],
    ['v.regexReplace("^a", "$0$0$0$0$0$0$0$0$0$0$0$0")', 'a'.repeat(100_000)],
    ['toJson(w)', ''],
    ['form.encode({"a": w.map(x, "")})', ''],
    ['w.map(x, {"a": x}.merge({"b": x}))', ''],
    ['w.map(x, uuid())', ''],
    ['w.map(x, w.with(y, toJson(y)))', ''],
    ['max(w)', ''],
  ])('%s on a large value takes little time', async (source, v) => {
    const w = Array.from({ length: 190_000 }, (_, index) => index)
    const run = () => {
      try {
        evaluate(`[${source}]`, { v, w })
      } catch (error) {
        if (!(error instanceof CelEvaluationError)) throw error
      }
    }
    await expectBelow(500, () => cpuMsOf(run))
  })
})
