import { describe, expect, it } from 'vitest'
import { checkConfig, configSchema } from '../schema.ts'
import { formatChecks } from './formats.ts'
import { loadConfigText } from './load.ts'
import { validateConfig } from './validate.ts'

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

  it('reports a bounded number of issues', () => {
    const issues = validateConfig(tree(...Array.from({ length: 200 }, (_, index) => `== ${index}`)))
    expect(issues).toHaveLength(51)
    expect(issues.at(-1)).toBe('and 150 more mistakes')
  })

  it('validates an invalid item again, and a changed one', () => {
    const sound = new WeakSet<object>()
    const wrong = tree('request.path == "/"', '==')
    expect(validateConfig(wrong, sound)).toHaveLength(1)
    expect(validateConfig(wrong, sound)).toHaveLength(1)
    const [first] = wrong.routes
    expect(validateConfig({ ...wrong, routes: [first, route('===')] }, sound)).toHaveLength(1)
    expect(validateConfig({ ...wrong, routes: [first] }, sound)).toEqual([])
  })

  it('reports paths in the whole tree, with items cached as valid', () => {
    const sound = new WeakSet<object>()
    const { routes, gateways } = tree('request.path == "/"', 'request.path == "/a"', 'request.path == "/b"')
    expect(validateConfig({ gateways, routes }, sound)).toEqual([])
    const [issue] = validateConfig({ gateways, routes: [...routes, { name: 'x', nonsense: 1 }] }, sound)
    expect(issue).toContain('routes[3]')
    const twice = { gateways, routes: [...routes, { ...routes[1] }] }
    expect(validateConfig(twice, sound)).toEqual(validateConfig(twice))
    expect(validateConfig({ gateways: {}, routes }, sound)).toHaveLength(3)
  })
})
