import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileArguments } from './arguments.ts'
import type { Operation, Parameter, RequestBody } from './document.ts'

function parameter(text: string, more: Partial<Parameter> = {}): Parameter {
  const [position = '', name = ''] = text.split(' ')
  const where = position === 'path' || position === 'header' ? position : 'query'
  const style = where === 'query' ? 'form' : 'simple'
  return { name, in: where, required: where === 'path', style, explode: style === 'form', ...more }
}

function encode(
  { path = '/x', parameters = [], body }: { path?: string; parameters?: Parameter[]; body?: RequestBody },
  args: unknown,
) {
  const operation: Operation = { name: 'x', method: 'POST', path, parameters, body, tool: {} }
  return compileArguments(operation, '/base')(typeof args === 'string' ? args : JSON.stringify(args))
}

function pathOf(...call: Parameters<typeof encode>): string {
  const encoded = encode(...call)
  return encoded.kind === 'call' ? encoded.path : `refused: ${encoded.message}`
}

const file = { path: '/files/{name}/raw', parameters: [parameter('path name')] }

describe('a path parameter', () => {
  it.each([
    ['a b', 'a%20b'],
    ['a/b', 'a%2Fb'],
    ['?x=1#y;z', '%3Fx%3D1%23y%3Bz'],
    ['%2e%2e%2f', '%252e%252e%252f'],
    ["it's(1)!*", 'it%27s%281%29%21%2A'],
    ['...', '...'],
    ['é', '%C3%A9'],
    [7, '7'],
    [true, 'true'],
    [['a', 'b,c'], 'a,b%2Cc'],
  ])('is escaped: %j', (name, escaped) => {
    expect(pathOf(file, { path: { name } })).toBe(`/base/files/${escaped}/raw`)
  })

  it.each(['.', '..', '../etc', 'a/../b', '..\\x', 'a\\..', './', '%2e%2E', 'a\r\nb', 'a\0', ''])(
    'is refused: %j',
    (name) => {
      expect(pathOf(file, { path: { name } })).toMatch(/^refused: the path/)
    },
  )

  it.each([[{ deep: {} }], [[[]]], [{ a: ['b'] }]])('is refused when nested: %j', (name) => {
    expect(pathOf(file, { path: { name } })).toMatch(/^refused: .* nested too deeply/)
  })

  it('cannot make a dot segment together with its neighbour', () => {
    const parameters = [parameter('path a'), parameter('path b')]
    expect(pathOf({ path: '/{a}{b}/x', parameters }, { path: { a: '.', b: '.' } })).toMatch(/^refused/)
    expect(pathOf({ path: '/.{a}/x', parameters: [parameter('path a')] }, { path: { a: '.' } })).toMatch(
      /^refused/,
    )
  })

  it('has to be there', () => {
    for (const args of [{}, { path: {} }, { path: { name: null } }]) {
      expect(pathOf(file, args)).toBe('refused: the path parameter "name" is missing')
    }
  })

  it('never changes the path around it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        const path = pathOf(file, { path: { name } })
        if (path.startsWith('refused')) return
        const url = new URL(path, 'http://api.test')
        expect(url.pathname + url.search + url.hash).toBe(path)
        expect(url.pathname.split('/')).toHaveLength(5)
        expect(decodeURIComponent(url.pathname.split('/')[3] ?? '')).toBe(name)
      }),
    )
  })
})

describe('a query parameter', () => {
  it.each([
    ['form', true, ['a', 'b&c'], 'q=a&q=b%26c'],
    ['form', false, ['a', 'b,c'], 'q=a,b%2Cc'],
    ['form', true, { k: 'v', 'x=': 1 }, 'k=v&x%3D=1'],
    ['form', false, { k: 'v', l: 2 }, 'q=k,v,l,2'],
    ['spaceDelimited', false, ['a', 'b'], 'q=a%20b'],
    ['pipeDelimited', false, ['a', 'b'], 'q=a%7Cb'],
    ['deepObject', true, { k: 'v', 'x]': 1 }, 'q%5Bk%5D=v&q%5Bx%5D%5D=1'],
    ['json', false, { k: ['v'] }, 'q=%7B%22k%22%3A%5B%22v%22%5D%7D'],
    ['form', true, 'a b&c=d\r\n', 'q=a%20b%26c%3Dd%0D%0A'],
    ['form', true, false, 'q=false'],
  ] as const)('is written in the style %s (explode %s): %j', (style, explode, q, query) => {
    const parameters = [parameter('query q', { style, explode })]
    expect(pathOf({ parameters }, { query: { q } })).toBe(`/base/x?${query}`)
  })

  it('is left out where it is not given', () => {
    const parameters = [parameter('query a'), parameter('query b')]
    expect(pathOf({ parameters }, { query: { a: null } })).toBe('/base/x')
  })

  it('cannot pose as another one', () => {
    const parameters = [parameter('query filter'), parameter('query admin')]
    expect(pathOf({ parameters }, { query: { filter: { admin: 'true' } } })).toMatch(/^refused: "admin"/)
  })

  it('is unchanged after decoding of the query', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
        (q) => {
          const path = pathOf({ parameters: [parameter('query q')] }, { query: { q } })
          const url = new URL(path, 'http://api.test')
          expect([...url.searchParams]).toEqual([['q', q]])
          expect(url.hash).toBe('')
        },
      ),
    )
  })
})

describe('a header parameter', () => {
  const parameters = [parameter('header X-Trace')]

  it('is passed on', () => {
    expect(encode({ parameters }, { header: { 'X-Trace': 'a b' } })).toMatchObject({
      headers: { 'x-trace': 'a b' },
    })
  })

  it.each(['a\r\nb: c', 'a\nb', 'a\0', '\u0100', 'a\u2028b'])('is refused: %j', (value) => {
    expect(encode({ parameters }, { header: { 'X-Trace': value } })).toMatchObject({ kind: 'bad' })
    expect(encode({ parameters }, { header: { 'X-Trace': [value] } })).toMatchObject({ kind: 'bad' })
    expect(encode({ parameters }, { header: { 'X-Trace': { [value]: 1 } } })).toMatchObject({ kind: 'bad' })
  })
})

describe('a body', () => {
  const json: RequestBody = { required: true, mediaType: 'application/json', form: 'json' }

  it('is passed on as it was written', () => {
    const encoded = encode({ body: json }, '{"body": {"n": 12345678901234567890, "e":"\\u00e9"} }')
    expect(encoded).toMatchObject({
      headers: { 'content-type': 'application/json' },
      body: '{"n": 12345678901234567890, "e":"\\u00e9"}',
    })
  })

  it('has to be there when it is required', () => {
    expect(encode({ body: json }, {})).toEqual({ kind: 'bad', message: '"body" is missing' })
    expect(encode({ body: { ...json, required: false } }, {})).toMatchObject({ body: undefined, headers: {} })
  })

  it('is decoded from base64 where the API takes bytes', () => {
    const body: RequestBody = { required: true, mediaType: 'application/octet-stream', form: 'base64' }
    expect(encode({ body }, { body: 'AAEC/w==' })).toMatchObject({ body: Buffer.from([0, 1, 2, 255]) })
    expect(encode({ body }, { body: 'no base64!' })).toMatchObject({ kind: 'bad' })
    expect(encode({ body }, { body: 7 })).toMatchObject({ kind: 'bad' })
  })

  it('is written as a form where the API takes one', () => {
    const body: RequestBody = {
      required: true,
      mediaType: 'application/x-www-form-urlencoded',
      form: 'urlencoded',
    }
    const encoded = encode({ body }, { body: { a: 'x&y', b: ['1', '2'], c: null } })
    expect(encoded).toMatchObject({ body: 'a=x%26y&b=1&b=2' })
    expect(encode({ body }, { body: { a: { b: 1 } } })).toMatchObject({ kind: 'bad' })
  })
})

describe('arguments', () => {
  it.each([
    ['{"query":{"a":1,"a":2}}', '"query.a" occurs twice'],
    ['[1]', 'not a JSON object'],
    ['{"name":"x"}', 'unknown argument "name"'],
    ['{"body":{}}', 'unknown argument "body"'],
    ['{"query":{"__proto__":"x"}}', 'no query parameter "__proto__"'],
    ['{"query":{"b":"x"}}', 'no query parameter "b"'],
    ['{"query":"a=1"}', '"query" must be an object'],
    ['{"query":{"a":"\\ud800"}}', 'must be valid Unicode'],
  ])('that fit no operation are refused: %s', (args, message) => {
    expect(encode({ parameters: [parameter('query a')] }, args)).toEqual({
      kind: 'bad',
      message: expect.stringContaining(message),
    })
  })

  it('may be missing where nothing is needed', () => {
    const operation: Operation = {
      name: 'x',
      method: 'GET',
      path: '/é',
      parameters: [],
      body: undefined,
      tool: {},
    }
    expect(compileArguments(operation, '')(undefined)).toMatchObject({ kind: 'call', path: '/%C3%A9' })
  })
})
