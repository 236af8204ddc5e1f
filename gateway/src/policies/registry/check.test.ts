import { describe, expect, it } from 'vitest'
import type { Schema } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { LocalRateLimitConfig } from '../rate-limit/local-config.ts'
import type { TrafficKind } from './cel-variables.ts'
import { checkGatewayPolicies, checkRoutePolicies, replacesPrefix } from './check.ts'
import { llmPoliciesSchema, type PoliciesConfig } from './schema.ts'

function isValid(schema: Schema, config: unknown): boolean {
  return schema.safeParse(config).success
}

function mistakes(config: PoliciesConfig, kind: TrafficKind | 'gateway'): string[] {
  const paths: string[] = []
  const report: ReportIssue = (path) => paths.push(path.join('.'))
  if (kind === 'gateway') checkGatewayPolicies(config, report)
  else checkRoutePolicies(config, kind, report)
  return paths
}

const good: PoliciesConfig = {
  cors: { allowOrigins: ['https://chat.example.com'] },
  apiKey: { keys: [{ key: 'k', metadata: { group: 'platform' } }] },
  authorization: { rules: [{ require: 'apiKey.group == "platform"' }, { deny: 'llmRequest.model == "x"' }] },
  localRateLimit: [
    { requests: 1, unit: 'Minutes' },
    { tokens: 10, unit: 'Minutes' },
  ],
}

describe('checking policies', () => {
  it('permits ui.change in ui.policies only', () => {
    const config: PoliciesConfig = { authorization: { rules: ['!ui.change'] } }
    expect(mistakes(config, 'ui')).toEqual([])
    expect(mistakes({ authorization: { rules: ['!ui.changes'] } }, 'ui')).toEqual(['authorization.rules.0'])
    for (const kind of ['gateway', 'http', 'llm', 'mcp'] as const)
      expect(mistakes(config, kind)).toEqual(['authorization.rules.0'])
  })

  it('reports where a mistake is', () => {
    const config: PoliciesConfig = {
      cors: { allowOrigins: ['nonsense'] },
      apiKey: { keys: [{ key: '' }] },
      authorization: { rules: ['1 +'] },
      localRateLimit: [{ maxTokens: 1, tokensPerFill: 2, fillInterval: '1s' }],
      rateLimit: { local: [{ requests: 1, unit: 'Hours', key: 'x' }] },
    }
    expect(isValid(llmPoliciesSchema, config)).toBe(true)
    expect(mistakes(config, 'llm')).toEqual([
      'cors.allowOrigins.0',
      'apiKey.keys.0.key',
      'authorization.rules.0',
      'localRateLimit.0.maxTokens',
      'rateLimit.local.0.key',
      'rateLimit.local',
    ])
  })

  it('finds nothing wrong with a good configuration', () => {
    expect(isValid(llmPoliciesSchema, good)).toBe(true)
    expect(mistakes(good, 'llm')).toEqual([])
  })

  it('accepts variables of the LLM request on LLM routes only', () => {
    const config: PoliciesConfig = {
      authorization: { rules: ['llmRequest.model == "x"'] },
      localRateLimit: [{ requests: 1, unit: 'Hours', key: 'llm.requestModel' }],
    }
    expect(mistakes(config, 'llm')).toEqual([])
    for (const kind of ['gateway', 'http', 'mcp'] as const) {
      expect(mistakes(config, kind)).toEqual(['authorization.rules.0', 'localRateLimit.0.key'])
    }
  })

  it('accepts limits for LLM traffic on every kind of route, with the variables of LLM requests', () => {
    const descriptors = [{ entries: [{ key: 'm', value: 'llmRequest.model' }], type: 'tokens' as const }]
    const config: PoliciesConfig = {
      localRateLimit: [
        { tokens: 1, unit: 'Hours', appliesTo: 'llm' },
        { requests: 1, unit: 'Hours', key: 'llm.requestModel', appliesTo: 'llm' },
      ],
      remoteRateLimit: { host: 'limits:8081', domain: 'd', appliesTo: 'llm', descriptors },
    }
    for (const kind of ['llm', 'gateway', 'http', 'mcp'] as const) expect(mistakes(config, kind)).toEqual([])
  })

  it('accepts limits on tokens where there may be tokens', () => {
    const local: LocalRateLimitConfig = [{ tokens: 1, unit: 'Hours' }]
    const config: PoliciesConfig = { localRateLimit: local }
    expect(mistakes(config, 'llm')).toEqual([])
    expect(mistakes(config, 'gateway')).toEqual([])
    expect(mistakes(config, 'http')).toEqual(['localRateLimit.0'])
    expect(mistakes({ rateLimit: { local } }, 'mcp')).toEqual(['rateLimit.local.0'])
  })

  it('reports errors in conditional limits at their entries', () => {
    const perTool = { requests: 1, unit: 'Hours', key: 'mcp.tool.name' } as const
    const config: PoliciesConfig = {
      localRateLimit: {
        conditional: [
          { tokens: 1, unit: 'Hours' },
          { ...perTool, condition: 'jwt.sub ==' },
        ],
      },
      remoteRateLimit: {
        conditional: [
          { host: 'l:1', domain: 'd', descriptors: [{ entries: [{ key: 'k', value: 'mcp.tool.name' }] }] },
        ],
      },
    }
    expect(mistakes(config, 'mcp')).toEqual([
      'localRateLimit.conditional.0.condition',
      'localRateLimit.conditional.1.condition',
      'localRateLimit.conditional.0',
      'localRateLimit.conditional.1.key',
      'remoteRateLimit.conditional.0.descriptors',
    ])
  })

  it('reports errors in request and reply modifications', () => {
    const config: PoliciesConfig = {
      jwtAuth: { issuer: 'i', audiences: ['a'], jwks: 'x' },
      requestHeaderModifier: { set: { host: 'x' } },
      responseHeaderModifier: { set: { connection: 'close' } },
      requestRedirect: { path: { full: 'x' } },
      directResponse: { status: 204, body: 'x' },
      urlRewrite: { path: { prefix: 'x' } },
    }
    expect(mistakes(config, 'http')).toEqual([
      'jwtAuth.jwks',
      'requestHeaderModifier.set.host',
      'responseHeaderModifier.set.connection',
      'requestRedirect.path.full',
      'directResponse.body',
      'urlRewrite.path.prefix',
      'directResponse',
    ])
    expect(replacesPrefix(config)).toBe(true)
    expect(replacesPrefix({ urlRewrite: { path: { full: '/x' } } })).toBe(false)
  })

  it('accepts request modifications on forwarding routes', () => {
    const config: PoliciesConfig = { requestHeaderModifier: {}, urlRewrite: {} }
    expect(mistakes(config, 'http')).toEqual([])
    expect(mistakes(config, 'llm')).toEqual([])
    expect(mistakes(config, 'mcp')).toEqual([])
  })

  it('accepts policies of MCP where there is MCP', () => {
    const config: PoliciesConfig = {
      mcpAuthentication: { issuer: 'https://id.test', audiences: ['a'] },
      mcpAuthorization: { rules: [] },
    }
    expect(mistakes(config, 'mcp')).toEqual([])
    expect(mistakes(config, 'http')).toEqual(['mcpAuthentication', 'mcpAuthorization'])
    expect(mistakes(config, 'llm')).toEqual(['mcpAuthentication', 'mcpAuthorization'])
  })
})
