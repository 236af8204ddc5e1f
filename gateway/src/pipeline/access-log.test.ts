import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureConnection } from '../../test/fixtures/pipeline.ts'
import { createCancellation } from '../lib/cancellation.ts'
import type { Delivery } from '../net/http/incoming-request.ts'
import { accessLine, createTimestamp } from './access-log.ts'
import { createAuthState, type Exchange, type Facts } from './exchange.ts'

const delivered: Delivery = { complete: true, status: 200, bytesSent: 5, firstByteAt: 12.346 }

function exchangeWith(facts: Partial<Facts>, rest: Partial<Exchange> = {}): Exchange {
  const request = {
    method: 'POST',
    scheme: 'http' as const,
    host: 'h',
    path: '/v1/chat/completions',
    query: '?api-key=query-secret',
    version: '1.1',
    headers: { authorization: 'Bearer header-secret' },
  }
  const none = { jwt: undefined, apiKey: undefined, llmRequest: undefined, llm: undefined, usage: undefined }
  return {
    facts: { request, source: { address: '10.0.0.1', port: 5 }, ...none, ...facts },
    body: undefined,
    connection: fixtureConnection(),
    pathVariants: undefined,
    peer: undefined,
    cancellation: createCancellation(),
    startedAt: 10,
    upgrade: undefined,
    informational: undefined,
    route: { target: { name: 'llm' }, prefix: '/' },
    requestId: undefined,
    errorFormat: 'openai',
    forwarding: undefined,
    auth: createAuthState(),
    limits: undefined,
    llm: undefined,
    mcp: undefined,
    guards: undefined,
    recording: undefined,
    budgets: undefined,
    charges: undefined,
    payload: undefined,
    log: { refusedBy: undefined, errorCode: undefined, failure: undefined },
    ...rest,
  }
}

const lineOf = (exchange: Exchange, delivery = delivered) =>
  JSON.parse(accessLine(exchange, delivery, '2026-01-01T00:00:00.000Z', 20))

const chat = { operation: 'chat', api: 'chat_completions' } as const

describe('accessLine', () => {
  it.each([
    [0.0001425, '0.0001425'],
    [1e-12, '0.000000000001'],
    [2.5e-7, '0.00000025'],
    [0, '0'],
    [12, '12'],
  ])('writes a cost of %d dollars as a plain number', (cost, written) => {
    const llm = { ...chat, requestModel: 'm', configuredModel: 'm', provider: 'openai', streaming: false }
    const exchange = exchangeWith({ llm: { ...llm, cost, costStatus: 'exact' } })
    const line = accessLine(exchange, delivered, '2026-01-01T00:00:00.000Z', 20)
    expect(line).toContain(`,"costUsd":${written},"costStatus":"exact"`)
    expect(JSON.parse(line)).toMatchObject({ costUsd: cost })
  })

  it('reports the reason for an unknown cost', () => {
    const llm = { ...chat, requestModel: 'm', configuredModel: 'm', provider: 'openai', streaming: false }
    const line = lineOf(exchangeWith({ llm: { ...llm, costStatus: 'missing' } }))
    expect(line).toMatchObject({ costStatus: 'missing' })
    expect(line).not.toHaveProperty('costUsd')
  })

  it('logs route, model, key, status, tokens and durations', () => {
    const llm = { ...chat, requestModel: 'gpt', configuredModel: '*', provider: 'openai', streaming: true }
    const usage = {
      inputTokens: 3,
      outputTokens: 4,
      totalTokens: 7,
      cachedInputTokens: 1,
      cacheCreationInputTokens: 0,
      reasoningTokens: 2,
      estimated: true,
    }
    expect(lineOf(exchangeWith({ llm, usage, apiKey: { id: 'key-1' } }))).toEqual({
      level: 'info',
      time: '2026-01-01T00:00:00.000Z',
      msg: 'request',
      method: 'POST',
      path: '/v1/chat/completions',
      route: 'llm',
      status: 200,
      durationMs: 10,
      firstByteMs: 2.35,
      bytesSent: 5,
      client: '10.0.0.1',
      keyId: 'key-1',
      model: 'gpt',
      stream: true,
      servedBy: '*',
      provider: 'openai',
      inputTokens: 3,
      outputTokens: 4,
      totalTokens: 7,
      cachedInputTokens: 1,
      reasoningTokens: 2,
      tokensEstimated: true,
    })
  })

  it('logs the call of an MCP message', () => {
    const asked = { method: 'tools/call', item: 'two_"echo"\n', target: 'two' }
    expect(lineOf(exchangeWith({}, { mcp: { call: asked, onDelivered: undefined } }))).toMatchObject({
      mcpMethod: 'tools/call',
      mcpItem: 'two_"echo"\n',
      mcpTarget: 'two',
    })
    const all = { method: 'x'.repeat(999), item: undefined, target: undefined }
    const line = lineOf(exchangeWith({}, { mcp: { call: all, onDelivered: undefined } }))
    expect(line.mcpMethod).toHaveLength(201)
    expect(line).not.toHaveProperty('mcpItem')
    expect(line).not.toHaveProperty('mcpTarget')
  })

  it('logs the refusing policy, the failure and a disconnected client', () => {
    const left: Delivery = { complete: false, status: undefined, bytesSent: 0, firstByteAt: undefined }
    const line = lineOf(
      exchangeWith(
        {},
        { log: { refusedBy: 'rate-limit', errorCode: undefined, failure: new TypeError('boom') } },
      ),
      left,
    )
    expect(line).toMatchObject({ status: 499, incomplete: true, refusedBy: 'rate-limit' })
    expect(line.error).toMatchObject({ name: 'TypeError', message: 'boom' })
  })

  it('omits header values and the query', () => {
    expect(JSON.stringify(lineOf(exchangeWith({})))).not.toMatch(/secret/)
  })

  it('is one valid JSON line for any client data', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (model) => {
        const llm = {
          ...chat,
          requestModel: model,
          configuredModel: undefined,
          provider: undefined,
          streaming: false,
        }
        const line = accessLine(exchangeWith({ llm }), delivered, 't', 20)
        expect(line.indexOf('\n')).toBe(line.length - 1)
        const logged = JSON.parse(line).model
        expect(model.length > 200 ? logged.slice(0, 200) : logged).toBe(model.slice(0, 200))
      }),
    )
  })
})

describe('createTimestamp', () => {
  it('follows the clock', () => {
    let now = 0
    const timestamp = createTimestamp(() => now)
    expect(timestamp()).toBe('1970-01-01T00:00:00.000Z')
    now = 1
    expect(timestamp()).toBe('1970-01-01T00:00:00.001Z')
  })
})
