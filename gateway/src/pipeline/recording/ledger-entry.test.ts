import { describe, expect, it } from 'vitest'
import { fixtureExchange, fixtureUsage } from '../../../test/fixtures/pipeline.ts'
import type { LedgerEntry } from '../../ledger/entry.ts'
import type { Delivery } from '../../net/http/incoming-request.ts'
import type { Exchange, Facts, RequestFacts } from '../exchange.ts'
import type { LlmFacts } from '../facts/llm-facts.ts'
import { isRecorded, ledgerEntry } from './ledger-entry.ts'
import { type AttemptRecord, createRecording } from './recording.ts'
import { compileStandardAttributes } from './standard-attributes.ts'

const delivered: Delivery = { complete: true, status: 200, bytesSent: 5, firstByteAt: 12.346 }
const attributes = compileStandardAttributes({})

function exchangeOf(
  request: Partial<RequestFacts> = {},
  facts: Partial<Facts> = {},
  rest: Partial<Exchange> = {},
): Exchange {
  const target = { name: 'llm', listener: 'default/public', traffic: 'llm' } as const
  return { ...fixtureExchange(request, facts), route: { target, prefix: '/' }, requestId: 'id-1', ...rest }
}

function entryOf(exchange: Exchange, delivery: Delivery = delivered): LedgerEntry {
  return ledgerEntry(exchange, delivery, { endedAt: 20.123, completedAt: 1_020, attributes })
}

const llm: LlmFacts = {
  operation: 'chat',
  api: 'chat_completions',
  requestModel: 'fast',
  configuredModel: 'fast',
  provider: 'openai',
  streaming: true,
  cost: 0.000_142_5,
  costPicodollars: 142_500_000,
  costStatus: 'exact',
}

const attempt = {
  target: 'fast',
  provider: 'openai',
  model: 'gpt-5-mini',
  sent: true,
  startedAt: 1,
  headAt: 2,
  endedAt: undefined,
  status: 200,
  failure: undefined,
  upstreamRequestId: 'req_7',
}

function attempted(...attempts: AttemptRecord[]): Partial<Exchange> {
  return { recording: { ...createRecording('errors'), attempts } }
}

describe('ledgerEntry', () => {
  it('contains request, key, user, model, tokens and cost', () => {
    const apiKey = { id: 'key-1', name: 'ci', group: 'platform', user: 'ada', secret: 'x' }
    const headers = {
      'user-agent': 'sdk/1',
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    }
    const exchange = exchangeOf(
      { headers, arrivedAt: 1_000 },
      { apiKey, llm, usage: { ...fixtureUsage(10), cachedInputTokens: 4 } },
      attempted({ ...attempt, failure: 'status_503' }, attempt, { ...attempt, sent: false }),
    )
    expect(entryOf(exchange)).toEqual({
      id: 'id-1',
      kind: 'llm',
      startedAt: 1_000,
      completedAt: 1_020,
      durationMs: 20.12,
      firstByteMs: 12.35,
      status: 200,
      errorCode: undefined,
      refusedBy: undefined,
      method: 'POST',
      path: '/v1/chat/completions',
      route: 'llm',
      listener: 'default/public',
      keyId: 'key-1',
      keyName: 'ci',
      user: 'ada',
      group: 'platform',
      client: '127.0.0.1',
      userAgent: 'sdk/1',
      operation: 'chat',
      provider: 'openai',
      requestModel: 'fast',
      servedModel: 'gpt-5-mini',
      streaming: true,
      attempts: 2,
      tokens: { input: 10, output: 0, total: 10, cachedInput: 4, cacheCreationInput: 0, reasoning: 0 },
      tokensEstimated: false,
      costPicodollars: 142_500_000,
      costStatus: 'exact',
      mcpMethod: undefined,
      mcpTarget: undefined,
      mcpItem: undefined,
      guards: undefined,
      limits: undefined,
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      upstreamRequestId: 'req_7',
      incomplete: false,
      charges: [],
      details: {},
    })
  })

  it('has the model of the response if the provider reports one', () => {
    const reported = { ...llm, responseModel: 'gpt-5-mini-2026' }
    expect(entryOf(exchangeOf({}, { llm: reported }, attempted(attempt))).servedModel).toBe('gpt-5-mini-2026')
  })

  it('has status 499 and a code after a disconnect before the response', () => {
    const gone = { complete: false, status: undefined, bytesSent: 0, firstByteAt: undefined }
    expect(entryOf(exchangeOf(), gone)).toMatchObject({
      status: 499,
      errorCode: 'request_aborted',
      incomplete: true,
    })
  })

  it.each([
    ['rate-limit: llm: requests per minute', 'rate_limit_exceeded'],
    ['guardrail: pii', 'guardrail_intervention'],
    ['mcp: unknown session', 'mcp_unknown_session'],
    ['mcp-authorization: rule 1', 'authorization_failed'],
  ])('derives the code of the refusal "%s"', (refusedBy, code) => {
    const log = { refusedBy, errorCode: undefined, failure: undefined }
    expect(entryOf(exchangeOf({}, {}, { log })).errorCode).toBe(code)
    const stated = { ...log, errorCode: 'stated' }
    expect(entryOf(exchangeOf({}, {}, { log: stated })).errorCode).toBe('stated')
  })

  it('truncates texts from clients', () => {
    const long = 'x'.repeat(5_000)
    const exchange = exchangeOf(
      { path: `/${long}`, method: long, headers: { 'user-agent': long } },
      { apiKey: { id: long, name: long }, llm: { ...llm, requestModel: long, responseModel: long } },
      { log: { refusedBy: long, errorCode: undefined, failure: undefined } },
    )
    expect(JSON.stringify(entryOf(exchange)).length).toBeLessThan(3_500)
  })

  it.each([
    '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
    'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    '00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01',
    'x',
  ])('ignores the invalid traceparent %s', (traceparent) => {
    expect(entryOf(exchangeOf({ headers: { traceparent } })).traceId).toBeUndefined()
  })
})

describe('isRecorded', () => {
  const refused = { refusedBy: 'api-key', errorCode: undefined, failure: undefined }
  const operation = (name: 'list_models' | 'chat') =>
    ({ operation: { operation: name, api: 'models' }, message: undefined, estimate: undefined }) as const
  const mcp = { name: 'mcp', traffic: 'mcp' } as const
  const call = { method: 'tools/call', item: 'add', target: 'a' }

  it.each<[string, boolean, Partial<Exchange>, Partial<RequestFacts>]>([
    ['an LLM request', true, { llm: operation('chat') }, {}],
    ['a list of models', false, { llm: operation('list_models') }, { method: 'GET' }],
    ['a refused LLM request', true, { log: refused }, {}],
    ['a preflight', false, {}, { method: 'OPTIONS' }],
    ['a refused read of an unknown path', false, { log: refused }, { method: 'GET' }],
    [
      'an MCP message',
      true,
      { route: { target: mcp, prefix: '/' }, mcp: { call, onDelivered: undefined } },
      {},
    ],
    ['a refused MCP message', true, { route: { target: mcp, prefix: '/' }, log: refused }, {}],
    ['the stream of an MCP session', false, { route: { target: mcp, prefix: '/' } }, { method: 'GET' }],
  ])('decides on %s: %s', (_title, recorded, rest, request) => {
    expect(isRecorded(exchangeOf(request, {}, rest))).toBe(recorded)
  })
})

describe('standard attributes', () => {
  const facts = (more: Partial<Facts>) => exchangeOf({}, more).facts

  it('default to user, name and owner of the key, then to the token', () => {
    const jwt = { sub: 'sub-1', email: 'a@b.c', groups: ['g1', 'g2'] }
    expect(attributes.user(facts({ apiKey: { name: 'ci', owner: 'ada' }, jwt }))).toBe('ci')
    expect(attributes.user(facts({ apiKey: { owner: 'ada' }, jwt }))).toBe('ada')
    expect(attributes.user(facts({ apiKey: {}, jwt }))).toBe('sub-1')
    expect(attributes.group(facts({ apiKey: { group: 'platform' }, jwt }))).toBe('platform')
    expect(attributes.group(facts({ jwt }))).toBe('g1')
    expect(attributes.user(facts({}))).toBeUndefined()
    expect(attributes.group(facts({ jwt: { groups: 'g1' } }))).toBeUndefined()
  })

  it('follow the configured expressions, without a value after an error', () => {
    const configured = compileStandardAttributes({ user: 'jwt.email', group: 'request.headers["x-team"]' })
    const given = facts({ jwt: { email: 'a@b.c' } })
    expect(configured.user(given)).toBe('a@b.c')
    expect(configured.group(given)).toBeUndefined()
    expect(configured.group(exchangeOf({ headers: { 'x-team': 'red' } }).facts)).toBe('red')
  })

  it.each([
    'request.headers["authorization"]',
    'request.headers["x-auth-request"]',
    'request.headers["api_key"]',
    'request.query',
    'apiKey.name + request.uri',
  ])('store a hash of %s', (user) => {
    const headers = { authorization: 'Bearer canary', 'x-auth-request': 'canary', api_key: 'canary' }
    const { facts: known } = exchangeOf({ headers })
    const request = { ...known.request, query: '?key=canary', uri: 'http://host/?key=canary' }
    const given = { ...known, apiKey: { name: 'canary' }, request }
    expect(compileStandardAttributes({ user }).user(given)).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  it('store values of headers beside members of the key', () => {
    const group = 'has(apiKey.group) ? apiKey.group : request.headers["x-team"]'
    const { facts: given } = exchangeOf({ headers: { 'x-team': 'red' } })
    given.apiKey = { id: 'k' }
    expect(compileStandardAttributes({ group }).group(given)).toBe('red')
  })
})
