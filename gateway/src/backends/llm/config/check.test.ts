import { describe, expect, it } from 'vitest'
import { check } from '../../../schema/check.ts'
import { object } from '../../../schema/dsl.ts'
import { checkLlm } from './check.ts'
import { checkPreferredCosts } from './check-virtual-models.ts'
import { type LlmConfig, llmFields } from './config.ts'

function mistakes(config: LlmConfig): string[] {
  const reported: string[] = []
  checkLlm(config, (path, message) => reported.push(`${path.join('.')}: ${message}`))
  return reported
}

const gpt = { name: 'gpt-4o', provider: 'openai' }
const withTargets = (routing: object): LlmConfig => ({
  models: [gpt, { name: 'claude-*', provider: 'anthropic' }],
  virtualModels: [{ name: 'fast', routing } as never],
})

describe('llmFields', () => {
  it('accepts a configuration with all keys', () => {
    const config = {
      port: 4000,
      models: [
        {
          name: 'gpt-*',
          id: 'gpt',
          provider: 'openai',
          params: { model: 'gpt-4o', apiKey: { file: '/run/key' }, baseUrl: 'https://example.com/v1' },
          defaults: { temperature: 0 },
          overrides: { store: false },
          visibility: 'internal',
          matches: [{ headers: [{ name: 'X-Team', value: { regex: '^a' } }] }],
        },
        { name: '*', provider: { reference: 'shared' } },
      ],
      providers: [{ name: 'shared', provider: 'groq', params: { apiKey: 'k' } }],
      virtualModels: [
        { name: 'w', routing: { weighted: { targets: [{ model: 'gpt-4' }, { model: 'x', weight: 3 }] } } },
        { name: 'f', routing: { failover: { targets: [{ model: 'gpt-4', priority: 0 }] } } },
        {
          name: 'c',
          routing: { conditional: { targets: [{ when: 'has(jwt.sub)', model: 'a' }, { model: 'b' }] } },
        },
      ],
      passthrough: true,
      timeouts: { firstByte: '1m', idle: '30s' },
    }
    const checked = check(object(llmFields, { doc: '' }), config)
    expect(checked).toEqual({ kind: 'valid', value: config })
    expect(checked.kind === 'valid' && mistakes(checked.value)).toEqual([])
  })

  it('accepts a custom provider with its formats', () => {
    const provider = { custom: { formats: [{ type: 'completions' }, { type: 'messages', path: '/m' }] } }
    const params = { baseUrl: 'https://llm.test' }
    const config = { models: [{ name: 'a', provider, params }], providers: [{ name: 's', provider, params }] }
    const checked = check(object(llmFields, { doc: '' }), config)
    expect(checked.kind === 'valid' && mistakes(checked.value)).toEqual([])
  })

  it('rejects a custom provider with invalid formats or without an address', () => {
    const formats = [{ type: 'messages' }, { type: 'messages', path: 'm?x' }]
    const config = { models: [{ name: 'a', provider: { custom: { formats } } }] }
    const checked = check(object(llmFields, { doc: '' }), config)
    expect(checked.kind === 'valid' && mistakes(checked.value)).toEqual([
      'models.0.provider.custom.formats: formats[1]: duplicate type "messages"',
      'models.0.provider.custom.formats: formats[1].path must start with a slash, without spaces, query and fragment',
      'models.0.provider: provider "custom" requires params.baseUrl',
    ])
  })

  it('rejects two routings, and none', () => {
    const both = {
      weighted: { targets: [{ model: 'a' }] },
      failover: { targets: [{ model: 'a', priority: 1 }] },
    }
    for (const routing of [both, {}]) {
      expect(
        check(object(llmFields, { doc: '' }), { models: [], virtualModels: [{ name: 'v', routing }] }).kind,
      ).toBe('mistakes')
    }
  })
})

describe('checkLlm', () => {
  it.each<[string, LlmConfig, string]>([
    [
      'an unknown provider, with the nearest',
      { models: [{ name: 'a', provider: 'opnai' }] },
      'models.0.provider: unknown provider "opnai", did you mean "openai"?',
    ],
    [
      'an unknown reference, with the nearest',
      {
        models: [{ name: 'a', provider: { reference: 'shard' } }],
        providers: [{ name: 'shared', provider: 'openai' }],
      },
      'models.0.provider.reference: llm.providers has no entry named "shard", did you mean "shared"?',
    ],
    [
      'settings beside a reference',
      {
        models: [{ name: 'a', provider: { reference: 'shared' }, params: { apiKey: 'k', model: 'm' } }],
        providers: [{ name: 'shared', provider: 'openai' }],
      },
      'models.0.params.apiKey: is not valid with a reference: set it in provider "shared"; only params.model is valid here',
    ],
    [
      'two credentials',
      { models: [{ name: 'a', provider: 'openai', params: { apiKey: 'k' }, auth: { key: 'l' } }] },
      'models.0.auth: is not valid with params.apiKey: remove one of them',
    ],
    [
      'two credentials of a provider',
      {
        models: [],
        providers: [
          { name: 'a', provider: 'openai', params: { apiKey: 'k' }, defaults: { auth: { passthrough: {} } } },
        ],
      },
      'providers.0.defaults.auth: is not valid with params.apiKey: remove one of them',
    ],
    [
      'a header that is made anew',
      { models: [{ name: 'a', provider: 'openai', requestHeaders: { set: { 'content-length': '1' } } }] },
      'models.0.requestHeaders.set.content-length: content-length is made anew for each message',
    ],
    [
      'TLS settings under two names',
      { models: [{ name: 'a', provider: 'openai', tls: {}, backendTLS: {} }] },
      'models.0.backendTLS: is another name of tls: remove one of them',
    ],
    [
      'a host beside the whole address',
      { models: [{ name: 'a', provider: 'openai', params: { baseUrl: 'http://b', hostOverride: 'c:1' } }] },
      'models.0.params.hostOverride: is not valid with baseUrl: write the address in baseUrl',
    ],
    [
      'a path without its slash',
      { models: [{ name: 'a', provider: 'openai', params: { pathOverride: 'v1' } }] },
      'models.0.params.pathOverride: must start with a slash and contain no spaces, got "v1"',
    ],
    [
      'a star in the middle',
      { models: [{ name: 'a*b', provider: 'openai' }] },
      'models.0.name: the * of a model name must be its first or last character, got "a*b"',
    ],
    [
      'two stars',
      { models: [{ name: '*a*', provider: 'openai' }] },
      'models.0.name: only one * is allowed in a model name, got "*a*"',
    ],
    [
      'a missing address',
      { models: [{ name: 'a', provider: 'custom' }] },
      'models.0.provider: provider "custom" requires params.baseUrl',
    ],
    [
      'a credential in an address',
      { models: [{ name: 'a', provider: 'openai', params: { baseUrl: 'http://u:p@example.com' } }] },
      'models.0.params.baseUrl: must not contain a credential: use params.apiKey',
    ],
    [
      'a credential that is empty',
      { models: [{ name: 'a', provider: 'openai', params: { apiKey: '' } }] },
      'models.0.params.apiKey: must be printable ASCII without spaces, and must not be empty',
    ],
    [
      'a credential with a line end, without repeating it',
      { models: [], providers: [{ name: 'a', provider: 'openai', params: { apiKey: 'secret\n' } }] },
      'providers.0.params.apiKey: must be printable ASCII without spaces, and must not be empty',
    ],
    [
      'a model that can never be reached',
      { models: [gpt, gpt] },
      'models.1.name: an earlier model named "gpt-4o" matches every request: add matches to one of them',
    ],
    [
      'ids that repeat',
      {
        models: [
          { ...gpt, id: 'x' },
          { name: 'b', provider: 'echo', id: 'x' },
        ],
      },
      'models.1.id: duplicate model id "x"',
    ],
    [
      'provider names that repeat',
      {
        models: [],
        providers: [
          { name: 'p', provider: 'openai' },
          { name: 'p', provider: 'echo' },
        ],
      },
      'providers.1.name: duplicate provider name "p"',
    ],
    [
      'a target nobody serves, with the nearest',
      withTargets({ weighted: { targets: [{ model: 'gpt-4p' }] } }),
      'virtualModels.0.routing.weighted.targets.0.model: no entry of llm.models matches "gpt-4p", did you mean "gpt-4o"?',
    ],
    [
      'a target that is a virtual model',
      withTargets({ failover: { targets: [{ model: 'fast', priority: 1 }] } }),
      'virtualModels.0.routing.failover.targets.0.model: "fast" is a virtual model: a target must be one of llm.models',
    ],
    [
      'weights that are all 0',
      withTargets({ weighted: { targets: [{ model: 'gpt-4o', weight: 0 }] } }),
      'virtualModels.0.routing.weighted.targets: at least one weight must be greater than 0',
    ],
    [
      'a condition missing before the last target',
      withTargets({ conditional: { targets: [{ model: 'gpt-4o' }, { when: 'true', model: 'claude-1' }] } }),
      'virtualModels.0.routing.conditional.targets.0.when: is required for all targets but the last',
    ],
    ['a time limit of 0', { models: [], timeouts: { idle: '0s' } }, 'timeouts.idle: must be greater than 0'],
  ])('reports %s', (_, config, expected) => {
    expect(mistakes(config)).toEqual([expected])
  })

  it('reports invalid CEL and RE2 with their positions', () => {
    const [cel] = mistakes(
      withTargets({ conditional: { targets: [{ when: 'request.path ==', model: 'gpt-4o' }] } }),
    )
    expect(cel).toMatch(/^virtualModels\.0\.routing\.conditional\.targets\.0\.when: .*line 1/)
    const matches = [{ headers: [{ name: 'a', value: { regex: '(' } }] }]
    const [pattern] = mistakes({ models: [{ ...gpt, matches: matches as never }] })
    expect(pattern).toMatch(/^models\.0\.matches\.0\.headers\.0\.value\.regex: /)
  })

  it('accepts repeated names with different matches or visibility, and virtual models named like their target', () => {
    const matches = [{ headers: [{ name: 'a', value: { exact: 'b' } }] }] as never
    expect(
      mistakes({
        models: [{ ...gpt, matches }, gpt, { ...gpt, visibility: 'internal' }],
        virtualModels: [{ name: 'gpt-4o', routing: { weighted: { targets: [{ model: 'gpt-4o' }] } } }],
      }),
    ).toEqual([])
  })
})

describe('routing of virtual models', () => {
  const targets = (...priorities: number[]) => priorities.map((priority) => ({ model: 'gpt-4o', priority }))
  const sessionAffinity = { source: 'request.headers["x-session"]' }

  it('accepts the choice among equal targets', () => {
    const models = [{ ...gpt, labels: { region: 'eu' } }]
    const requiredLabels = { region: 'apiKey.region' }
    const failover = { targets: targets(0, 0), prefer: 'latency', contextFallback: true, requiredLabels }
    const weighted = { targets: [{ model: 'gpt-4o' }, { model: 'gpt-4o' }], sessionAffinity }
    const virtualModels = [
      { name: 'f', routing: { failover } },
      { name: 'w', routing: { weighted } },
    ]
    const checked = check(object(llmFields, { doc: '' }), { models, virtualModels })
    expect(checked.kind === 'valid' && mistakes(checked.value)).toEqual([])
  })

  it.each<[string, object, string]>([
    ['prefer', { prefer: 'cost' }, 'prefer: requires targets of equal priority'],
    ['sessionAffinity', { sessionAffinity }, 'sessionAffinity: requires targets of equal priority'],
    [
      'both',
      { targets: targets(0, 0), prefer: 'cost', sessionAffinity },
      'prefer: is not valid with sessionAffinity: remove one of them',
    ],
    [
      'contextFallback of one target',
      { targets: targets(0), contextFallback: true },
      'contextFallback: requires a second target',
    ],
    [
      'hedge of one target',
      { targets: targets(0), hedge: { delay: '1s' } },
      'hedge: requires a second target',
    ],
    ['hedge', { hedge: { delay: '0s' } }, 'hedge.delay: must be greater than 0, and at most 1m'],
    [
      'unknown labels',
      { requiredLabels: { region: '"eu"' } },
      'requiredLabels.region: no entry of llm.models has the label "region"',
    ],
  ])('refuses %s without effect', (_, settings, message) => {
    const failover = { targets: targets(0, 1), ...settings }
    expect(mistakes(withTargets({ failover }))).toEqual([`virtualModels.0.routing.failover.${message}`])
  })

  it('refuses expressions that do not compile', () => {
    const failover = { targets: targets(0, 0), sessionAffinity: { source: 'nothing.id' } }
    const [mistake] = mistakes(withTargets({ failover }))
    expect(mistake).toMatch(/^virtualModels\.0\.routing\.failover\.sessionAffinity\.source: .*column 1/)
  })

  it.each([
    [{ max: 1, queue: 1, timeout: '2m' }, 'must be greater than 0, and at most 1m'],
    [{ max: 1, timeout: '1s' }, 'has no effect without queue: set queue, or remove it'],
  ])('refuses concurrency %j', (concurrency, message) => {
    expect(mistakes({ models: [{ ...gpt, concurrency }] })).toEqual([
      `models.0.concurrency.timeout: ${message}`,
    ])
  })

  it('refuses a comparison of prices without a catalog', () => {
    const reported: string[] = []
    const config = withTargets({ failover: { targets: targets(0, 0), prefer: 'cost' } })
    checkPreferredCosts(config, (path) => reported.push(path.join('.')))
    expect(reported).toEqual(['virtualModels.0.routing.failover.prefer'])
  })
})
