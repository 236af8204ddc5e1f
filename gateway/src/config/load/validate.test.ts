import { describe, expect, it } from 'vitest'
import { createAuthority } from '../../../test/support/certificates.ts'
import { formatPath } from '../../schema/path.ts'
import { checkConfig, configSchema } from '../schema.ts'
import { addCustomFunctions } from './custom-functions.ts'
import { formatChecks } from './formats.ts'
import { loadConfigText } from './load.ts'
import {
  type ConfigPart,
  createValidatedParts,
  type PartSurroundings,
  validateConfig,
  validatePart,
} from './validate.ts'

const route = (rule: string) => ({
  name: rule,
  gateways: 'g',
  policies: { authorization: { rules: [rule] } },
})
const tree = (...rules: string[]) => ({ gateways: { g: { port: 8080 } }, routes: rules.map(route) })

describe('a configuration without a text', () => {
  it('is valid if it is valid as a file', () => {
    expect(validateConfig({})).toEqual([])
    expect(validateConfig(tree('request.path == "/"'))).toEqual([])
  })

  it.each([
    [{ llm: {} }, 'llm.models: is required: a list'],
    [{ llm: { models: [{ name: 'm', provider: 'nobody' }] } }, 'unknown provider "nobody"'],
    [tree('request.path =='), 'routes[0].policies.authorization.rules[0]'],
    [tree('nothing.path == "/"'), 'routes[0].policies.authorization.rules[0]'],
    [{ routes: [{ name: 'x\ny\u0000', gateways: 'none' }] }, 'unknown gateway reference none'],
    [{ nonsense: 1 }, 'unknown key `nonsense`'],
  ])('%j is refused with one line for each mistake, as in a file', (value, message) => {
    const issues = validateConfig(value)
    expect(issues.join('\n')).toContain(message)
    for (const issue of issues) expect(issue).not.toMatch(/[\n\0]/)
    const text = JSON.stringify(value)
    const source = {
      text,
      file: 'f',
      env: {},
      schema: configSchema,
      checks: [checkConfig],
      formats: formatChecks,
    }
    expect(loadConfigText(source).kind).toBe('issues')
  })

  it.each([
    ['remoteRateLimit', 'llm.cost * 1000.0', {}, 'llm.cost has no value without prices'],
    ['rateLimit', 'llm.cost * 1000.0', {}, 'llm.cost has no value without prices'],
    ['remoteRateLimit', 'llm.costs', {}, 'did you mean "llm.cost"?'],
    ['remoteRateLimit', 'llm.cost * 1000.0', { modelCatalog: [{ inline: { providers: {} } }] }, undefined],
    ['remoteRateLimit', 'llm.totalTokens', {}, undefined],
  ])('with a cost in %s of %s and %j has the issue %s', (field, cost, config, message) => {
    const entries = [{ key: 'k', value: 'apiKey.id' }]
    const limits = { host: 'l:1', domain: 'd', descriptors: [{ entries, type: 'tokens', cost }] }
    const policies = field === 'rateLimit' ? { rateLimit: { global: limits } } : { [field]: limits }
    const issues = validateConfig({ config, llm: { models: [{ name: 'e', provider: 'echo' }], policies } })
    if (message === undefined) expect(issues).toEqual([])
    else expect(issues.join()).toContain(message)
  })

  it('refuses a cost in dollars for requests, which have no usage yet', () => {
    const entries = [{ key: 'k', value: 'apiKey.id' }]
    const limits = { host: 'l:1', domain: 'd', descriptors: [{ entries, cost: 'llm.cost' }] }
    const llm = { models: [{ name: 'e', provider: 'echo' }], policies: { remoteRateLimit: limits } }
    expect(validateConfig({ llm }).join()).toContain('it is available only after the response')
  })

  describe('credentials of clients', () => {
    const text = 'jwt.rawToken.unredacted()'
    const gateways = { g: { port: 8080 } }
    const backends = [{ host: 'a.test:80' }]
    const http = (policies: object) => ({
      gateways,
      routes: [{ name: 'r', gateways: 'g', backends, policies }],
    })
    const llm = (rest: object) => ({ llm: { models: [{ name: 'm', provider: 'echo', ...rest }] } })
    const config = (rest: object) => ({ config: rest })
    const front = (rest: object) => ({ frontendPolicies: rest })

    it.each([
      http({ authorization: { rules: [`${text}.startsWith("a")`] } }),
      http({ transformations: { request: { metadata: { token: text } } } }),
      http({ transformations: { response: { set: { 'x-token': text } } } }),
      http({ localRateLimit: [{ requests: { maxRequests: 1, fillInterval: '1s' }, key: text }] }),
      http({ directResponse: { status: 200, bodyExpression: text } }),
      http({ extAuthz: { host: 'a.test:80', cache: { key: [text], ttl: '1s' } } }),
      http({ retry: { attempts: 1, condition: `${text} == ""` } }),
      front({ accessLog: { add: { token: text } } }),
      front({ accessLog: { filter: `${text} == ""` } }),
      front({ tracing: { host: 'a.test:80', attributes: { token: text } } }),
      config({ metrics: { fields: { add: { token: text } } } }),
      config({ standardAttributes: { user: text } }),
      {
        ...config({ customFunctions: `token() { ${text} }` }),
        ...front({ accessLog: { add: { token: 'token()' } } }),
      },
      llm({ transformation: { model: text } }),
    ])('are not revealed by %j', (value) => {
      expect(messagesOf(value).join('\n')).toContain('unredacted() is only valid in headers and bodies')
    })

    it.each([
      http({ transformations: { request: { set: { 'x-token': text }, body: text } } }),
      http({
        backendAuth: {
          oauthTokenExchange: { host: 'a.test', subjectToken: { source: { expression: text } } },
        },
      }),
      http({
        extAuthz: { host: 'a.test:80', protocol: { http: { addRequestHeaders: { 'x-token': text } } } },
      }),
      llm({ transformation: { user: text } }),
    ])('are sent to backends and services by %j', (value) => {
      expect(messagesOf(value)).toEqual([])
    })
  })

  it('reports a bounded number of issues', () => {
    const issues = validateConfig(tree(...Array.from({ length: 200 }, (_, index) => `== ${index}`)))
    expect(issues).toHaveLength(51)
    expect(issues.at(-1)).toBe('and 150 more mistakes')
  })

  it('validates an invalid item again, and a changed one', () => {
    const sound = createValidatedParts()
    const wrong = tree('request.path == "/"', '==')
    expect(validateConfig(wrong, sound)).toHaveLength(1)
    expect(validateConfig(wrong, sound)).toHaveLength(1)
    const [first] = wrong.routes
    expect(validateConfig({ ...wrong, routes: [first, route('===')] }, sound)).toHaveLength(1)
    expect(validateConfig({ ...wrong, routes: [first] }, sound)).toEqual([])
  })

  it('reports paths in the whole tree, with items cached as valid', () => {
    const sound = createValidatedParts()
    const { routes, gateways } = tree('request.path == "/"', 'request.path == "/a"', 'request.path == "/b"')
    expect(validateConfig({ gateways, routes }, sound)).toEqual([])
    const [issue] = validateConfig({ gateways, routes: [...routes, { name: 'x', nonsense: 1 }] }, sound)
    expect(issue).toContain('routes[3]')
    const twice = { gateways, routes: [...routes, { ...routes[1] }] }
    expect(validateConfig(twice, sound)).toEqual(validateConfig(twice))
    expect(validateConfig({ gateways: {}, routes }, sound)).toHaveLength(3)
  })
})

/** Mistakes of a file. */
function messagesOf(value: object): string[] {
  const outcome = loadConfigText({
    text: JSON.stringify(value),
    file: 'f',
    env: {},
    schema: configSchema,
    checks: [checkConfig],
    formats: formatChecks,
    prepare: addCustomFunctions,
  })
  return outcome.kind === 'issues' ? outcome.issues.map(({ message }) => message) : []
}

const surroundings: PartSurroundings = {
  gateways: {
    g: { port: 8080, listeners: [{ name: 'a', hostname: 'a.test' }] },
    tcp: { port: 8081, protocol: 'TCP' },
  },
  backends: [
    { name: 'shop', endpoints: [] },
    { name: 'model', ai: { provider: { echo: {} } } },
  ],
}

function issuesOf(part: ConfigPart): string[] {
  return validatePart(part, surroundings).map(({ path, message }) => `${formatPath(path)}: ${message}`)
}

const routePart = (value: Record<string, unknown>): ConfigPart => ({
  kind: 'route',
  value: { gateways: 'g/a', backends: [{ backend: '/shop' }], ...value },
})

describe('validatePart', () => {
  it.each<[string, ConfigPart]>([
    ['route', routePart({})],
    [
      'route with a backend of another kind',
      routePart({ backends: [{ backend: '/model' }], policies: { ai: {} } }),
    ],
    ['tcpRoute', { kind: 'tcpRoute', value: { gateways: ['tcp'], backends: [{ backend: '/shop' }] } }],
    ['backend', { kind: 'backend', value: { name: 'other', host: 'a:80' } }],
    ['gateway', { kind: 'gateway', name: 'more', value: { port: 80 } }],
    ['policies', { kind: 'policies', of: 'llm', value: { ai: { promptGuard: { request: [] } } } }],
  ])('finds nothing wrong with a valid %s', (_, part) => {
    expect(issuesOf(part)).toEqual([])
  })

  it('reports issues of schema, formats and checks at their path inside the part', () => {
    expect(issuesOf(routePart({ matches: [{ path: {} }] }))).toEqual([
      'matches[0].path: exactly one of exact, pathPrefix, regex is required here; found none',
    ])
    const rules = ['request.path ==']
    expect(issuesOf(routePart({ policies: { authorization: { rules } } }))[0]).toMatch(
      /^policies\.authorization\.rules\[0\]: /,
    )
    expect(issuesOf(routePart({ hostnames: ['b.test'] }))).toEqual([
      'hostnames: must match a host of a listener of the route: g/a is for a.test',
    ])
    expect(issuesOf(routePart({ gateways: 'none', backends: [{ backend: '/none' }] }))).toEqual([
      'gateways: unknown gateway reference none',
      'backends[0].backend: no backend is named "none"',
    ])
    expect(issuesOf({ kind: 'policies', of: 'http', value: { ai: {} } })[0]).toMatch(
      /^ai: is only valid with/,
    )
    expect(issuesOf({ kind: 'backend', value: { name: 'x', host: 'a:0' } })).toEqual([
      'host: port 0 cannot be connected to',
    ])
  })

  it('reports invalid certificates of a listener, without quoting them', () => {
    const authority = createAuthority()
    const [one, other] = [authority.issue('a.test'), authority.issue('b.test')]
    const gateway = (cert: string, key: string): ConfigPart => ({
      kind: 'gateway',
      name: 'tls',
      value: { port: 443, listeners: [{ name: 'a', tls: { cert: { inline: cert }, key: { inline: key } } }] },
    })
    expect(issuesOf(gateway(one.cert, one.key))).toEqual([])
    expect(issuesOf(gateway('none', one.key))).toEqual([
      'listeners[0].tls.cert.inline: contains no certificate in PEM format',
    ])
    expect(issuesOf(gateway(one.cert, other.key))).toEqual([
      'listeners[0].tls: key: is not the key of the certificate',
    ])
  })

  it('accepts exactly the parts that a whole configuration accepts', () => {
    const parts = [{}, { backends: [] }, { hostnames: ['*.test', 'x..y'] }, { timeout: 1 }, { policies: [] }]
    for (const value of parts) {
      const part = routePart(value)
      const whole = { ...surroundings, routes: [part.value] }
      expect([value, issuesOf(part).length > 0]).toEqual([value, validateConfig(whole).length > 0])
    }
  })
})
