import { describe, expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../test/support/time-bound.ts'
import { type CelProgram, compileCel, evaluateBoolean } from './cel.ts'
import { CelEvaluationError } from './failure.ts'
import { SecretText } from './secret-text.ts'

const roots = new Set(['request', 'source', 'jwt', 'apiKey', 'llmRequest', 'llm', 'mcp'])

const facts = {
  request: {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { authorization: 'Bearer x', accept: ['a/b', 'c/d'] },
  },
  jwt: { sub: 'u1', roles: ['reader', 'admin'], level: 3, score: 1.5, nothing: null },
  apiKey: { id: 'k1', group: 'platform' },
  llmRequest: undefined,
}

function program(source: string): CelProgram {
  const compiled = compileCel(source, roots)
  if (compiled.kind === 'issue') throw new Error(compiled.message)
  return compiled.program
}

function evaluate(source: string, variables: object = facts): unknown {
  return program(source).evaluate(variables)
}

function issue(source: string) {
  const compiled = compileCel(source, roots)
  return compiled.kind === 'issue' ? compiled : undefined
}

describe('rules', () => {
  it.each([
    ['apiKey.group == "platform" && request.path.startsWith("/v1/")', true],
    ['"admin" in jwt.roles', true],
    ['jwt.roles.exists(role, role == "owner")', false],
    ['jwt.roles.all(role, role.size() > 3) && jwt.level >= 3', true],
    ['request.headers["accept"][1] == "c/d"', true],
    ['has(llmRequest.model) && llmRequest.model == "large"', false],
    ['request.path.matches("^/v1/(chat|messages)")', true],
  ])('%s', (source, expected) => {
    expect(evaluateBoolean(program(source), facts)).toBe(expected)
    expect(program(source).engine).toBe('closures')
  })

  it('throw if the result is not a boolean', () => {
    expect(() => evaluateBoolean(program('jwt.sub'), facts)).toThrow('must be true or false, not string')
  })

  it('throw if a claim is missing', () => {
    expect(() => evaluateBoolean(program('jwt.tenant == "a"'), facts)).toThrow('no such key: tenant')
  })

  it('report the name of an unset variable', () => {
    expect(() => evaluateBoolean(program('llmRequest.model == "a"'), facts)).toThrow(
      'llmRequest has no value',
    )
  })

  it('decide by one operand if the other fails', () => {
    expect(evaluate('jwt.tenant == "a" || jwt.sub == "u1"')).toBe(true)
    expect(evaluate('jwt.tenant == "a" && jwt.sub == "u2"')).toBe(false)
    expect(() => evaluate('jwt.tenant == "a" && jwt.sub == "u1"')).toThrow(CelEvaluationError)
  })
})

describe('compiling', () => {
  it('lists the variables of an expression, without those of macros', () => {
    expect(program('jwt.roles.exists(r, r == request.method) && source.port > 1').roots).toEqual(
      new Set(['jwt', 'request', 'source']),
    )
  })

  it('reports an unknown variable with its position and the nearest known one', () => {
    expect(issue('true &&\n  reqest.path == "/"')).toEqual({
      kind: 'issue',
      message: 'unknown variable "reqest"; did you mean "request"?',
      line: 2,
      column: 3,
    })
  })

  it('lists the known variables if none is near', () => {
    expect(issue('whatever')?.message).toContain('known here: request, source')
  })

  it.each(['constructor', '__proto__', 'toString'])('rejects %s as a variable', (name) => {
    expect(issue(`${name} == 1`)?.message).toContain('unknown variable')
  })

  it('reports a syntax error with its position', () => {
    expect(issue('jwt.sub == "a" &&\n &&')).toMatchObject({ line: 1, column: 16 })
    expect(issue('')?.message).toContain('syntax error')
  })

  it.each([
    ['jwt.sub.startWith("a")', 'unknown function "startWith"; did you mean "startsWith"?'],
    ['constructor(jwt.sub)', 'unknown function "constructor"'],
    ['has(jwt)', 'has is used as has(a.b)'],
    ['jwt.roles.exists("r", true)', 'exists is used as list.exists(x, test)'],
    ['size(jwt.roles, 1)', 'size() takes 1 argument, not 2'],
    ['default(jwt.sub)', 'default() takes 2 arguments, not 1'],
    [
      'default(jwt.sub, google.protobuf.Int64Value{value: 1})',
      'default() does not combine with protobuf messages',
    ],
    ['base64.encod(jwt.sub)', 'unknown function "base64.encod"; did you mean "base64.encode"?'],
    ['base64.encode(jwt.sub, 1)', 'base64.encode() takes 1 argument, not 2'],
    ['jwt.roles.with(jwt.sub, 1)', 'with is used as x.with(name, result)'],
    ['jwt.sub.regexReplace("(", "")', 'invalid regular expression "("'],
    ['math.least()', 'math.least() takes 1 or more arguments, not 0'],
    ['contains(jwt.sub, "a")', 'contains is called as x.contains(…), not as contains()'],
    ['jwt.sub.matches("(")', 'invalid regular expression "("'],
  ])('refuses %s', (source, message) => {
    expect(issue(source)?.message).toContain(message)
  })

  it('rejects expressions over the limits of length and depth', () => {
    expect(issue(`"${'a'.repeat(17_000)}"`)?.message).toContain('longer than')
    expect(issue(`${'jwt.level + '.repeat(500)}1`)?.message).toContain('nested more than')
    expect(issue(`${'['.repeat(3000)}${']'.repeat(3000)}`)?.message).toContain('nested more than')
    expect(issue(`${'('.repeat(7000)}1${')'.repeat(7000)}`)).toBeDefined()
  })
})

describe('values', () => {
  it.each([
    ['jwt.level / 2', 1],
    ['jwt.level * 2 - 7 % 4', 3],
    ['jwt.score + 0.25', 1.75],
    ['jwt.level == 3.0', true],
    ['9007199254740993 - 1', 9007199254740992n],
    ['{"level": jwt.level, "list": [1.0, null]}', { level: 3, list: [1, null] }],
    ['jwt.roles.map(role, role + "!")', ['reader!', 'admin!']],
    ['jwt.roles.filter(role, role.contains("a"))', ['reader', 'admin']],
    ['jwt.roles.filter(role, role.startsWith("a"))', ['admin']],
    ['jwt.roles.map(role, role != "admin", size(role))', [6]],
    ['size("😀é")', 2],
    ['timestamp(3) < timestamp("1970-01-01T00:00:04Z")', true],
    ['timestamp(90)', '1970-01-01T00:01:30Z'],
    ['duration("90s")', '90s'],
    ['type(jwt.level)', 'int'],
    ['jwt.roles.contains("admin")', true],
    ['jwt.roles.contains("adm")', false],
    ['jwt.contains("sub")', true],
    ['jwt.roles.contains("admin") && jwt.contains("sub") && type(1) == int', true],
    ['default(jwt.tenant, "none")', 'none'],
    ['default(llmRequest.model, "none")', 'none'],
    ['default(jwt.sub, "none")', 'u1'],
    ['default(jwt.nothing, "none")', 'none'],
    ['coalesce(jwt.tenant, jwt.nothing, jwt.other)', null],
    ['default(timestamp(3), "none")', '1970-01-01T00:00:03Z'],
    ['coalesce(jwt.tenant, jwt.nothing, jwt.sub)', 'u1'],
    ['coalesce(jwt.nothing)', null],
    ['" A😀b ".trim().lowerAscii().substring(1)', '😀b'],
    ['"a b c".split(" ", 2)', ['a', 'b c']],
    ['"a b c".split(" ", 0)', []],
    ['"aXbXc".replace("X", "$&", 1)', 'a$&bXc'],
    ['"aXbXc".replace("X", "", -1)', 'abc'],
    ['jwt.roles.join(",").upperAscii()', 'READER,ADMIN'],
    ['request.path.stripPrefix("/v1").stripSuffix("/completions")', '/chat'],
    ['request.path.stripPrefix("/v1") + string(type(1) == int)', '/chat/completionstrue'],
  ])('%s', (source, expected) => {
    expect(evaluate(source)).toEqual(expected)
  })

  it.each([
    '9223372036854775807 + 1',
    '-9223372036854775807 - 2',
    '1 / 0',
    '1 % 0',
    '1 + 1.0',
    'int("")',
    'int("0x10")',
  ])('%s has no value', (source) => {
    expect(() => evaluate(source)).toThrow(CelEvaluationError)
    expect(() => evaluate(`type(${source}) == int`)).toThrow(CelEvaluationError)
  })

  it('fail if every alternative fails', () => {
    expect(() => evaluate('default(jwt.a, jwt.b)')).toThrow('no such key: b')
    expect(() => evaluate('coalesce(jwt.a, jwt.b)')).toThrow('no such key: b')
  })

  it('include keys with the value null and exclude keys with the value undefined', () => {
    for (const test of ['has(jwt.nothing)', '"nothing" in jwt', 'jwt.nothing == null']) {
      expect(evaluate(test)).toBe(true)
      expect(evaluate(`${test} && type(1) == int`)).toBe(true)
    }
    expect(evaluate('has(jwt.a) || "a" in jwt || size(jwt) != 0', { jwt: { a: undefined } })).toBe(false)
    expect(
      evaluate('(has(jwt.a) || "a" in jwt || size(jwt) != 0) && type(1) == int', { jwt: { a: undefined } }),
    ).toBe(false)
  })

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
    'see own properties only: %s',
    (name) => {
      for (const engine of ['', ' && type(1) == int']) {
        expect(() => evaluate(`jwt.${name} != 1${engine}`)).toThrow(CelEvaluationError)
        expect(() => evaluate(`jwt["${name}"] != 1${engine}`)).toThrow(CelEvaluationError)
        expect(evaluate(`!has(jwt.${name}) && !("${name}" in jwt)${engine}`)).toBe(true)
        const own: unknown = JSON.parse(`{"${name}": "mine"}`)
        expect(evaluate(`jwt.${name} == "mine" && "${name}" in jwt${engine}`, { jwt: own })).toBe(true)
      }
      expect(() => evaluate('jwt.roles.length == 2')).toThrow(CelEvaluationError)
      expect(() => evaluate('jwt.sub.length == 2')).toThrow(CelEvaluationError)
    },
  )

  it('may be objects without a prototype, dates and bytes', () => {
    const headers = Object.assign(Object.create(null), { a: 'x' })
    const variables = {
      request: { headers, startTime: new Date(5000) },
      jwt: { body: new TextEncoder().encode('hi') },
    }
    expect(evaluate('request.headers.a == "x" && size(request.headers) == 1', variables)).toBe(true)
    expect(evaluate('request.headers == {"a": "x"} && type(1) == int', variables)).toBe(true)
    expect(evaluate('request.startTime > timestamp(4) && request.startTime == timestamp(5)', variables)).toBe(
      true,
    )
    expect(evaluate('request.startTime', variables)).toBe('1970-01-01T00:00:05Z')
    expect(evaluate('string(jwt.body) == "hi"', variables)).toBe(true)
  })

  it('are read only if referenced', () => {
    const untouched = new Proxy({}, { ownKeys: () => expect.unreachable(), get: () => expect.unreachable() })
    const variables = { llmRequest: { model: 'm', messages: untouched }, jwt: untouched }
    expect(evaluate('llmRequest.model == "m"', variables)).toBe(true)
    expect(evaluate('llmRequest.model == "m" && type(llmRequest.model) == string', variables)).toBe(true)
  })
})

describe('has()', () => {
  it.each([
    ['has(llmRequest.model)', false],
    ['has(llmRequest.a.b[0].c)', false],
    ['has((jwt.level == 3 ? llmRequest : jwt).sub)', false],
    ['has((jwt.level == 4 ? llmRequest : jwt).sub)', true],
    ['has(jwt.sub.model)', false],
    ['has(jwt.a.b)', 'fails'],
    ['has((llmRequest.a ? jwt : jwt).sub)', 'fails'],
    ['has(jwt[llmRequest].a)', 'fails'],
    ['has([llmRequest][0].a)', 'fails'],
    ['has({"a": llmRequest}.a)', 'fails'],
  ])('%s: %s, in both engines', (source, expected) => {
    for (const engine of ['', ' && type(1) == int']) {
      if (expected === 'fails') expect(() => evaluate(source + engine)).toThrow(CelEvaluationError)
      else expect(evaluate(source + engine)).toBe(expected)
    }
  })
})

describe('hostile values', () => {
  it('cause an error if nested too deeply', () => {
    const nest = (): unknown => JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
    const variables = { jwt: { a: nest(), b: nest() } }
    for (const source of [
      'jwt.a == jwt.b',
      'jwt.a in [jwt.b]',
      '[jwt.a, 1]',
      'jwt.a == jwt.b && type(1) == int',
    ]) {
      expect(() => evaluate(source, variables)).toThrow(CelEvaluationError)
    }
    expect(evaluate('size(jwt.a)', variables)).toBe(1)
  })

  it('may contain invalid Unicode', () => {
    const variables = { jwt: { sub: '\ud800a\udc00' } }
    expect(evaluate('size(jwt.sub)', variables)).toBe(3)
    expect(evaluate('size(jwt.sub) + size(string(type(1) == int))', variables)).toBe(7)
  })

  it('cannot exceed the step limit of nested loops', () => {
    const list = Array.from({ length: 20_000 }, (_, index) => index)
    for (const engine of ['', ' && type(1) == int']) {
      const source = `jwt.list.all(x, jwt.list.all(y, x + y >= 0))${engine}`
      expect(() => evaluate(source, { jwt: { list } })).toThrow('too many steps')
    }
  })

  it('do not reduce the step limit of the next evaluation', () => {
    const list = Array.from({ length: 150_000 }, () => 1)
    const compiled = program('jwt.list.all(x, x == 1)')
    for (let round = 0; round < 3; round += 1) expect(compiled.evaluate({ jwt: { list } })).toBe(true)
  })

  it('cannot cause slow pattern matching', async () => {
    const text = `${'a'.repeat(20_000)}!`
    const pattern = '^(a|a?)+$'
    await expectBelow(2_000, () =>
      cpuMsOf(() => {
        expect(evaluate('jwt.text.matches("^(a+)+$")', { jwt: { text } })).toBe(false)
        expect(evaluate('jwt.text.matches(jwt.pattern)', { jwt: { text, pattern } })).toBe(false)
      }),
    )
  })
})

describe('members of variables', () => {
  const known = new Set([...roots, 'now'])
  const messageOf = (source: string, names: ReadonlySet<string> = known) => {
    const compiled = compileCel(source, names)
    return compiled.kind === 'issue' ? compiled.message : undefined
  }

  it.each([
    ['request.urii == "x"', 'did you mean "request.uri"?'],
    ['request.url == "x"', 'did you mean "request.uri"?'],
    ['request["pth"] == "x"', 'did you mean "request.path"?'],
    ['has(request.nothingNear)', 'request has method, scheme,'],
    ['request.path.value == "x"', 'request.path has no members'],
    ['mcp.tool.nme == "x"', 'did you mean "mcp.tool.name"?'],
    ['mcp.prompt.arguments.x == 1', 'mcp.prompt has name, target'],
    ['mcp.name == "x"', 'did you mean "mcp.tool.name"?'],
    ['source.ip == "x"', 'did you mean "source.address"?'],
    ['llm.model == "x"', 'did you mean "llm.requestModel"?'],
    ['llm.totalTokens > 1', 'it is available only after the response'],
    ['llm.cost > 1.0', 'it is available only after the response'],
    ['jwt.roles.exists(x, x == request.nope)', 'unknown member "request.nope"'],
  ])('are an issue if nonexistent: %s', (source, message) => {
    expect(messageOf(source)).toContain(message)
  })

  it.each([
    'request.headers.anything == "x" && request.headers["x-y"] == "z"',
    'jwt.anything.at.all == 1 && apiKey.x == 1 && llmRequest.y.z == 1',
    'mcp.tool.arguments.a.b == 1',
    '[{"nope": 1}].exists(request, request.nope == 1)',
    'request[jwt.member] == "x"',
  ])('are no issue if they may exist: %s', (source) => {
    expect(messageOf(source)).toBeUndefined()
  })

  it('are enabled by a dotted name among the variables', () => {
    expect(messageOf('llm.cost > 1.0', new Set([...known, 'llm.cost']))).toBeUndefined()
    expect(messageOf('llm.cost.x > 1.0', new Set([...known, 'llm.cost']))).toContain('has no members')
    expect(messageOf('llmx.cost', new Set([...known, 'llm.cost']))).not.toContain('llm.cost,')
  })
})

describe('derived members', () => {
  const request = {
    method: 'GET',
    scheme: 'https',
    host: 'h.test:8443',
    path: '/a/b',
    query: '?c=d',
    headers: {},
    arrivedAt: Date.UTC(2026, 10, 22, 8, 0, 0),
  }
  const clock = { now: () => Date.UTC(2026, 10, 22, 9, 0, 0) }
  const value = (source: string, variables: object = { request, clock }) => {
    const compiled = compileCel(source, new Set(['request', 'apiKey', 'now']))
    if (compiled.kind === 'issue') throw new Error(compiled.message)
    return compiled.program.evaluate(variables)
  }

  it.each([
    ['request.pathAndQuery', '/a/b?c=d'],
    ['request.uri', 'https://h.test:8443/a/b?c=d'],
    ['request["uri"].startsWith("https://")', true],
    ['request.startTime == timestamp("2026-11-22T08:00:00Z")', true],
    ['now - request.startTime == duration("1h")', true],
    ['now > timestamp(1700000000) && now.getFullYear() == 2026', true],
  ])('%s is %j', (source, expected) => {
    expect(value(source)).toEqual(expected)
  })

  it('support expiry of keys', () => {
    const rule = 'has(apiKey.expires) && timestamp(apiKey.expires) < now'
    const of = (expires?: string) => value(rule, { request, clock, apiKey: expires ? { expires } : {} })
    expect([of('2026-11-22T08:59:59Z'), of('2026-11-22T09:00:01Z'), of()]).toEqual([true, false, false])
    expect(() => of('soon')).toThrow(CelEvaluationError)
  })

  it('are unset without a clock', () => {
    expect(() => value('now > timestamp(0)', { request })).toThrow(CelEvaluationError)
  })
})

describe('request.body', () => {
  const withBody = new Set(['request', 'request.body', 'jwt'])
  const request = { method: 'POST', headers: {} }
  const compiled = (source: string, roots: ReadonlySet<string> = withBody) => {
    const result = compileCel(source, roots)
    if (result.kind === 'issue') throw new Error(result.message)
    return result.program
  }
  const value = (source: string, body: string | Uint8Array) =>
    compiled(source).evaluate({ request, jwt: undefined, body: Buffer.from(body) })

  it.each<[string, string | Uint8Array, unknown]>([
    ['string(request.body)', 'größe', 'größe'],
    ['size(request.body)', 'größe', 7],
    ['size(string(request.body))', 'größe', 5],
    ['string(request.body).size()', 'größe', 5],
    ['request["body"] == b"a"', 'a', true],
    ['has(request.body) && request.method == "POST"', '', true],
    ['string(request.body).contains("secret")', '{"a":"secret"}', true],
    ['string(request.body).matches("s.cret")', 'secret', true],
    ['!has(jwt.sub) && size(request.body) == 0', '', true],
    ['string(request.body) == "\\ufeffa"', '\ufeffa', true],
    ['request.body', 'a', Buffer.from('a')],
    ['default(json(request.body).a, "none")', '{"a":1}', 1],
    ['default(json(request.body).b, "none")', '{"a":1}', 'none'],
    ['default(string(request.body), "")', 'a', 'a'],
  ])('%s of %j is %j', (source, body, expected) => {
    expect(value(source, body)).toEqual(expected)
  })

  it.each([
    ['string(request.body) == ""', Buffer.from([0xff])],
    ['request["bo" + "dy"] == b"a"', 'a'],
    ['string(request.body) == ""', Buffer.alloc(16 * 1024 * 1024)],
    ['string(request.body).matches("x")', 'a'.repeat(2 * 1024 * 1024)],
  ])('%s fails for an unsupported body', (source, body) => {
    expect(() => value(source, body)).toThrow(CelEvaluationError)
  })

  it('is unset if the body was not read', () => {
    expect(() => compiled('size(request.body) == 0').evaluate({ request })).toThrow(CelEvaluationError)
  })

  it('is detected at compile time and read only if referenced', () => {
    for (const source of ['size(request.body)', 'request["body"]', '[1].exists(x, has(request.body))'])
      expect([source, compiled(source).readsBody]).toEqual([source, true])
    for (const source of [
      'request.method',
      'jwt.body',
      'jwt["body"]',
      'request.headers.body',
      '"request.body"',
    ])
      expect([source, compiled(source).readsBody]).toEqual([source, false])
  })

  it.each(['request.body', 'request["body"] == b""', 'has(request.body)', 'request["body"].size()'])(
    '%s is an issue in policies without a body',
    (source) => {
      expect(compileCel(source, new Set(['request']))).toMatchObject({
        kind: 'issue',
        message: expect.stringContaining('authorization and rate limits of HTTP and LLM routes'),
      })
    },
  )

  it.each(['request.body.model', 'request.bdy'])('%s is an issue', (source) => {
    expect(compileCel(source, withBody).kind).toBe('issue')
  })
})

describe('derived variables', () => {
  const known = new Set([
    'proxy',
    'backend',
    'mcp',
    'llm',
    'llm.cost',
    'llm.inputTokens',
    'response',
    'extauthz',
  ])
  const variables = {
    route: { name: 'api', listener: 'web/public', traffic: 'llm' },
    mcp: { method: 'tools/list' },
    llm: { operation: 'chat', cost: 0.5 },
    usage: { inputTokens: 7 },
    llmRequest: {
      temperature: 0.5,
      messages: [
        { role: 'system', content: 'Be brief' },
        {
          role: 'user',
          content: [{ type: 'text', text: 'a' }, { type: 'image' }, { type: 'text', text: 'b' }],
        },
      ],
    },
    response: { code: 200, headers: { 'grpc-status': '5' } },
    extAuthz: { user: 'ada' },
  }

  it.each<[string, unknown]>([
    ['[proxy.gateway.name, proxy.listener.name, proxy.route.name]', ['web', 'public', 'api']],
    ['[backend.type, backend.protocol]', ['ai', 'llm']],
    ['mcp.methodName + mcp.method', 'tools/listtools/list'],
    ['llm.cost.total == llm.cost && llm.inputTokens == 7', true],
    ['llm.prompt.map(m, m.role + ": " + m.content)', ['system: Be brief', 'user: ab']],
    ['llm.params.temperature', 0.5],
    ['has(llm.params.seed)', false],
    ['response.grpcStatus', 5],
    ['response.headers["GRPC-Status"]', '5'],
    ['extauthz.user', 'ada'],
  ])('%s', (source, expected) => {
    const compiled = compileCel(source, known)
    if (compiled.kind === 'issue') throw new Error(compiled.message)
    expect(compiled.program.evaluate(variables)).toEqual(expected)
  })
})

describe('integers beyond 2^53', () => {
  it.each([
    'llmRequest.seed == 9007199254740993',
    '9007199254740993 in [llmRequest.seed]',
    'int(llmRequest.seed) == 9007199254740993',
  ])('are compared exactly: %s', (source) => {
    expect(evaluate(source, { llmRequest: { seed: 9007199254740993n } })).toBe(true)
    expect(evaluate(source, { llmRequest: { seed: 9007199254740992n } })).toBe(false)
  })
})

describe('credentials', () => {
  const facts = {
    jwt: { sub: 'ann' },
    token: new SecretText('t-1'),
    apiKey: { id: 'a' },
    key: new SecretText('k-1'),
  }
  const roots = new Set(['jwt', 'apiKey'])

  function value(source: string): unknown {
    const compiled = compileCel(source, roots)
    if (compiled.kind === 'issue') throw new Error(compiled.message)
    return compiled.program.evaluate(facts)
  }

  it('are revealed by unredacted() only', () => {
    expect(value('"Bearer " + jwt.rawToken.unredacted()')).toBe('Bearer t-1')
    expect(value('apiKey.key.unredacted()')).toBe('k-1')
  })

  it.each([
    'jwt.rawToken',
    '[jwt.rawToken]',
    '{"a": apiKey.key}',
    'toJson(jwt.rawToken)',
    'toJson({"a": jwt, "b": jwt.rawToken})',
    'variables()',
    'toJson(variables())',
    'jwt.merge({"x": jwt.rawToken})',
  ])('are redacted in %s', (source) => {
    const text = JSON.stringify(value(source))
    expect(text).not.toMatch(/t-1|k-1/)
    expect(text).toContain('<redacted>')
  })

  it.each([
    'jwt.rawToken == "t-1"',
    'jwt.rawToken != "t-1"',
    '"t-1" == jwt.rawToken',
    'jwt.rawToken == apiKey.key',
    'jwt.rawToken == jwt.rawToken',
    'jwt.rawToken < "u"',
    'jwt.rawToken in ["t-1"]',
    'jwt.rawToken in {"t-1": 1}',
    'size(jwt.rawToken) == 3',
    'jwt.rawToken.size() == 0',
    'jwt.rawToken.startsWith("t")',
    'jwt.rawToken.contains("-")',
    'jwt.rawToken.matches("t.*")',
    'jwt.rawToken[0] == "t"',
    'jwt.rawToken.all(c, true)',
    'jwt.rawToken.filterKeys(k, true) == {}',
    'jwt.rawToken.merge({}) == {}',
    'base64.encode(jwt.rawToken)',
    'bytes(jwt.rawToken)',
    'jwt.rawToken == "t-1" || jwt.rawToken != "t-1"',
  ])('are not comparable: %s fails', (source) => {
    expect(() => value(source)).toThrow(CelEvaluationError)
  })

  it.each([
    ['[jwt.rawToken] == ["t-1"]', false],
    ['"t-1" in [jwt.rawToken]', false],
    ['{"a": jwt.rawToken} == {"a": "t-1"}', false],
    ['toJson(jwt.rawToken) == "\\"t-1\\""', false],
    ['has(jwt.rawToken)', true],
  ])('have constant results in %s', (source, expected) => {
    expect(value(source)).toBe(expected)
  })

  it.each(['string(jwt.rawToken)', 'jwt.rawToken + "x"', 'jwt.sub.unredacted()', '{}.unredacted()'])(
    'fail in %s',
    (source) => {
      expect(() => value(source)).toThrow(CelEvaluationError)
    },
  )
})
