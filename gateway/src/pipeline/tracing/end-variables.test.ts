import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { variablesAtEnd, withoutCredentials } from './end-variables.ts'

const delivery = { status: 200, bytesSent: 0, complete: true, firstByteAt: undefined, failure: undefined }

describe('variables of telemetry', () => {
  it.each([
    ['{"result":{"content":[]}}', { result: { content: [] } }],
    ['{"error":{"code":-32000}}', { error: { code: -32_000 } }],
    ['{"result":{"content":["cut o…', { result: '{"result":{"content":["cut o…' }],
    [undefined, {}],
  ])('have the outcome of a tool call: %s', (response, outcome) => {
    const exchange = fixtureExchange({})
    exchange.mcp = {
      call: { method: 'tools/call', item: 'echo', target: 'a', arguments: { text: 'x' }, response },
      onDelivered: undefined,
    }
    expect(variablesAtEnd(exchange, delivery).mcp).toEqual({
      method: 'tools/call',
      methodName: 'tools/call',
      tool: { name: 'echo', target: 'a', arguments: { text: 'x' }, ...outcome },
    })
  })

  it('have hashes of credentials', () => {
    const secrets = Object.fromEntries(
      [
        'authorization',
        'x-key',
        'x-user-pwd',
        'x-jwt',
        'x-saml-assertion',
        'x-amzn-oidc-data',
        'signature',
        'x-account',
        'sec-websocket-protocol',
      ].map((name) => [name, 'secret value']),
    )
    const { facts } = fixtureExchange({ headers: { ...secrets, 'x-team': 'a' }, query: '?a=secret value' })
    const source = {
      ...facts.source,
      connectHeaders: { 'proxy-authorization': 'secret value', 'x-team': 'b' },
    }
    const response = { headers: { 'set-cookie': 'secret value' } }
    const variables = withoutCredentials(
      { ...facts, source, mcp: undefined, response },
      new Set(['x-account']),
    )
    expect(JSON.stringify(variables)).not.toContain('secret value')
    expect(variables.request.headers['x-team']).toBe('a')
    expect(variables.source.connectHeaders).toMatchObject({ 'x-team': 'b' })
  })
})
