import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import type { TrafficKind } from './cel-variables.ts'
import type { PoliciesConfig } from './schema.ts'
import { warnAboutPolicies } from './warnings.ts'

type Warning = { fields: object; message: string }

function warningsOf(scopes: readonly PoliciesConfig[], kind: TrafficKind, times = 1): Warning[] {
  const warnings: Warning[] = []
  const context = fixtureContext()
  context.log.warn = (fields, message) => {
    warnings.push({ fields, message })
  }
  const placed = scopes.map((policies, index) => ({ name: `scope ${index}`, policies }))
  for (let count = 0; count < times; count++) warnAboutPolicies(placed, context, kind)
  return warnings
}

const rules = (...list: NonNullable<PoliciesConfig['authorization']>['rules']) => ({
  authorization: { rules: list },
})
const tokens = { jwtAuth: { issuer: 'https://i', audiences: ['*'], jwks: 'https://i/keys' } }

describe('warnings about rules', () => {
  it.each([
    { deny: 'request.path == "/v1/embeddings"' },
    { deny: 'request.path.startsWith("/v1/emb")' },
    { require: 'request.path != "/v1/embeddings"' },
    'request.path != "/v1/embeddings"',
  ])('name %j in front of models', (rule) => {
    const [warning] = warningsOf([rules(rule)], 'llm')
    expect(warning?.message).toContain('request.path')
    expect(warning?.fields).toMatchObject({ place: 'scope 0', instead: 'llm.operation or llm.api' })
    expect(warningsOf([rules(rule)], 'http')).toEqual([])
  })

  it.each([{ allow: 'request.path == "/v1/embeddings"' }, { deny: 'request.path.endsWith("/embeddings")' }])(
    'do not name %j',
    (rule) => {
      expect(warningsOf([rules(rule)], 'llm')).toEqual([])
    },
  )

  it.each<PoliciesConfig>([
    rules('"admin" in jwt.roles'),
    { mcpAuthorization: { rules: [{ deny: 'jwt.sub == "x"' }] } },
    { localRateLimit: [{ requests: 1, unit: 'Minutes', key: 'jwt.sub' }] },
    { rateLimit: { local: [{ requests: 1, unit: 'Minutes', key: 'jwt.sub' }] } },
    {
      remoteRateLimit: {
        host: 'limits:8081',
        domain: 'd',
        descriptors: [{ entries: [{ key: 'user', value: 'jwt.sub' }] }],
      },
    },
  ])('name expressions over jwt where no scope checks tokens: %j', (policies) => {
    const [warning, ...more] = warningsOf([{}, policies], 'mcp')
    expect(warning).toMatchObject({
      fields: { place: 'scope 1' },
      message: expect.stringContaining('without jwtAuth'),
    })
    expect(more).toEqual([])
    expect(warningsOf([tokens, policies], 'mcp')).toEqual([])
  })

  it('come once for a set of policies', () => {
    expect(warningsOf([rules('jwt.sub == "x"')], 'llm', 3)).toHaveLength(1)
  })
})

describe('warnings about cors', () => {
  it('name credentials for every origin, once', () => {
    const cors = { allowOrigins: ['*'], allowCredentials: true }
    const warnings = warningsOf([{ cors }], 'http', 2)
    expect(warnings).toMatchObject([{ fields: { place: 'scope 0', path: 'cors.allowOrigins' } }])
    expect(warningsOf([{ cors: { ...cors, allowCredentials: false } }], 'http')).toEqual([])
    expect(warningsOf([{ cors: { ...cors, allowOrigins: ['https://*'] } }], 'http')).toEqual([])
  })
})
