import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, throughPolicies } from '../pipeline/fixtures.ts'
import {
  checkLlmPolicies,
  compileLlmPolicies,
  compileMcpPolicies,
  type LlmPoliciesConfig,
  llmOrder,
  llmPoliciesSchema,
  mcpOrder,
} from './index.ts'

const llmRequest = { name: 'llm request' }
const everything: LlmPoliciesConfig = {
  cors: { allowOrigins: ['https://chat.example.com'] },
  apiKey: { keys: [{ key: 'k', metadata: { group: 'platform' } }] },
  authorization: { rules: [{ require: 'apiKey.group == "platform"' }, { deny: 'llmRequest.model == "x"' }] },
  localRateLimit: [
    { requests: 1, unit: 'Minutes' },
    { tokens: 10, unit: 'Minutes' },
  ],
}

function namesOf(config: LlmPoliciesConfig): string[] {
  return compileLlmPolicies(config, fixtureContext(), llmRequest, 'llm').map((policy) => policy.name)
}

describe('the policies of an LLM route', () => {
  it('come in the order of the list, each step with its reason', () => {
    expect(namesOf(everything)).toEqual([
      'cors',
      'api key',
      'authorization',
      'request limits',
      'llm request',
      'authorization of the LLM request',
      'token limits',
    ])
    for (const { because } of llmOrder) expect(because).not.toBe('')
  })

  it('are only the reading of the request when none is configured', () => {
    expect(namesOf({})).toEqual(['llm request'])
  })

  it('take rateLimit.local for localRateLimit', () => {
    expect(namesOf({ rateLimit: { local: [{ requests: 1, unit: 'Hours' }] } })).toEqual([
      'request limits',
      'llm request',
    ])
  })

  it('let a browser read a refusal', () => {
    const policies = compileLlmPolicies(everything, fixtureContext(), llmRequest, 'llm')
    const exchange = fixtureExchange({ headers: { origin: 'https://chat.example.com' } })
    const reply = throughPolicies(policies, exchange)
    expect(reply.status).toBe(401)
    expect(reply.headers['access-control-allow-origin']).toBe('https://chat.example.com')
  })

  it('count nothing for strangers and for requests that rules refuse', () => {
    const context = fixtureContext()
    const policies = compileLlmPolicies(everything, context, llmRequest, 'llm')
    for (let count = 0; count < 5; count++) throughPolicies(policies, fixtureExchange())
    const headers = { 'x-api-key': 'k' }
    const facts = { llmRequest: { model: 'y' } }
    expect(throughPolicies(policies, fixtureExchange({ headers: { ...headers } }, facts)).status).toBe(200)
    expect(throughPolicies(policies, fixtureExchange({ headers: { ...headers } }, facts)).status).toBe(429)
  })
})

describe('the policies of an MCP route', () => {
  it('let pages of an allowed origin do what sessions need', () => {
    const cors = {
      allowOrigins: ['https://chat.example.com'],
      allowHeaders: ['content-type', 'Mcp-Session-Id'],
    }
    const { policies } = compileMcpPolicies({ cors }, fixtureContext(), { place: 'mcp', isLoopback: false })
    const origin = 'https://chat.example.com'
    const asked = { origin, 'access-control-request-method': 'DELETE' }
    const preflight = throughPolicies(policies, fixtureExchange({ method: 'OPTIONS', headers: asked }))
    expect(preflight.headers).toMatchObject({
      'access-control-allow-methods': 'GET, POST, DELETE',
      'access-control-allow-headers': 'content-type, Mcp-Session-Id, mcp-protocol-version, last-event-id',
    })
    const { headers } = throughPolicies(policies, fixtureExchange({ headers: { origin } }))
    expect(headers['access-control-expose-headers']).toBe('mcp-session-id, www-authenticate')
  })
})

describe('the order of an MCP route', () => {
  it('lets nobody be counted or ruled on before it is known who asks, each step with its reason', () => {
    const place = (step: string) => mcpOrder.findIndex((entry) => entry.step === step)
    for (const known of ['authentication', 'apiKey']) {
      expect(place(known)).toBeGreaterThan(place('cors'))
      expect(place(known)).toBeLessThan(place('authorization'))
    }
    expect(place('authorization')).toBeLessThan(place('requestLimits'))
    expect(place('documents')).toBe(0)
    for (const { because } of mcpOrder) expect(because).not.toBe('')
  })
})

describe('checking', () => {
  it('reports where in the policies a mistake is', () => {
    const config: LlmPoliciesConfig = {
      cors: { allowOrigins: ['nonsense'] },
      apiKey: { keys: [{ key: '' }] },
      authorization: { rules: ['1 +'] },
      localRateLimit: [{ maxTokens: 1, tokensPerFill: 2, fillInterval: '1s' }],
      rateLimit: { local: [{ requests: 1, unit: 'Hours', key: 'x' }] },
    }
    expect(llmPoliciesSchema.safeParse(config).success).toBe(true)
    const paths: string[] = []
    checkLlmPolicies(config, (path) => paths.push(path.join('.')))
    expect(paths).toEqual([
      'cors.allowOrigins.0',
      'apiKey.keys.0.key',
      'authorization.rules.0',
      'localRateLimit.0.maxTokens',
      'rateLimit.local.0.key',
      'rateLimit.local',
    ])
  })

  it('finds nothing wrong with a good configuration', () => {
    expect(llmPoliciesSchema.safeParse(everything).success).toBe(true)
    checkLlmPolicies(everything, (path, message) => expect.fail(`${path.join('.')}: ${message}`))
  })
})
