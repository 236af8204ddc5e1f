import { expect, it } from 'vitest'
import { configSchema } from '../../config/schema.ts'
import { alternativesOf, shapeOf } from '../../schema/shape.ts'
import { machineIdentitiesIn } from './machine-identities.ts'

const shapes = alternativesOf(shapeOf(configSchema))
const found = (config: unknown) => [...machineIdentitiesIn(config, shapes)]
const paths = (config: unknown) => found(config).map(({ path }) => path.join('.'))

const implicit = { azure: { implicit: {} } }
const ofSecret = {
  azure: { explicitConfig: { clientSecret: { tenant_id: 't', client_id: 'c', client_secret: 's' } } },
}
const resource = { resourceName: 'contoso', resourceType: 'openAI' }

it.each([
  [{ implicit: {} }],
  [{ implicit: {}, scope: 'https://vault.azure.net/.default' }],
  [{ explicitConfig: { managedIdentity: {} } }],
  [{ explicitConfig: { workloadIdentity: {} } }],
  [{ explicitConfig: {} }],
  [{}],
])('backendAuth.azure %j is an identity of the machine', (azure) => {
  expect(paths({ mcp: { policies: { backendAuth: { azure } } } })).toEqual(['mcp.policies.backendAuth'])
})

it('a configured secret is not', () => {
  const policies = { backendAuth: ofSecret }
  expect(paths({ mcp: { policies }, backends: [{ name: 'b', host: 'a:1', policies }] })).toEqual([])
})

it.each([
  ['models.0.provider', { models: [{ name: 'm', provider: 'azure', params: {} }] }],
  ['providers.0.provider', { providers: [{ name: 'p', provider: 'azure' }], models: [] }],
  ['models.0.auth', { models: [{ name: 'm', provider: 'openai', auth: implicit }] }],
  [
    'providers.0.defaults.auth',
    { providers: [{ name: 'p', provider: 'openai', defaults: { auth: implicit } }] },
  ],
])('llm: %s is found', (path, llm) => {
  expect(paths({ llm })).toEqual([`llm.${path}`])
})

it('a provider with a credential has no implied identity', () => {
  const models = [
    { name: 'a', provider: 'azure', params: { apiKey: 'k' } },
    { name: 'b', provider: 'azure', auth: { passthrough: {} } },
    { name: 'c', provider: 'azure', auth: ofSecret },
    { name: 'd', provider: { reference: 'azure' } },
  ]
  expect(paths({ llm: { models } })).toEqual([])
})

it('ai backends are searched, with the policies beside them', () => {
  const entry = { name: 'p', provider: { azure: resource }, hostOverride: 'other.test:443' }
  const ai = { groups: [{ providers: [entry] }] }
  expect(paths({ backends: [{ name: 'b', ai }] })).toEqual(['backends.0.ai.groups.0.providers.0.provider'])
  const policies = { backendAuth: { key: 'k' } }
  expect(paths({ backends: [{ name: 'b', ai, policies }] })).toEqual([])
  expect(paths({ routes: [{ backends: [{ ai: { provider: { azure: resource } } }] }] })).toEqual([
    'routes.0.backends.0.ai.provider',
  ])
})

it.each(['azureContentSafety', 'googleModelArmor', 'bedrockGuardrails'])(
  'a guard %s without a credential uses an identity',
  (kind) => {
    const guard = { endpoint: 'http://other.test' }
    const config = (settings: object) => ({
      llm: { models: [], policies: { guardrails: { request: [{ [kind]: settings }] } } },
    })
    expect(paths(config(guard))).toEqual([`llm.policies.guardrails.request.0.${kind}`])
    expect(paths(config({ ...guard, policies: { backendAuth: { key: 'k' } } }))).toEqual([])
    expect(paths(config({ ...guard, policies: { backendAuth: { gcp: {} } } }))).toHaveLength(1)
  },
)

it('the owner of a part contains its destination', () => {
  const target = { name: 't', mcp: { host: 'a.test' }, policies: { backendAuth: implicit } }
  const extAuthz = { host: 'b.test:1', policies: { backendAuth: implicit } }
  const config = { mcp: { targets: [target] }, llm: { models: [], policies: { extAuthz } } }
  expect(found(config).map(({ owner }) => owner)).toEqual([target, extAuthz])
})

it('free JSON is not searched', () => {
  const body = { backendAuth: implicit, provider: 'azure' }
  const keys = [{ key: 'k', metadata: body }]
  expect(paths({ llm: { models: [], policies: { apiKey: { keys } } } })).toEqual([])
})
