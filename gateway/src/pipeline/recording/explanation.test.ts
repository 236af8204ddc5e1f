import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import type { Delivery } from '../../net/http/incoming-request.ts'
import type { Exchange } from '../exchange.ts'
import type { Policy } from '../policy.ts'
import {
  createExplainer,
  type ExplanationInputs,
  explanationOf,
  maxExplanationLength,
} from './explanation.ts'
import { ledgerEntry } from './ledger-entry.ts'
import { createRecording, type Explain, recordGuard, recordItem, recordLimit } from './recording.ts'
import { compileStandardAttributes } from './standard-attributes.ts'

const delivered: Delivery = { complete: true, status: 200, bytesSent: 5, firstByteAt: 14 }
const attributes = compileStandardAttributes({})

function exchangeOf(explain: Explain = 'errors', rest: Partial<Exchange> = {}): Exchange {
  const target = { name: 'llm', listener: 'default', traffic: 'llm' } as const
  const exchange = fixtureExchange()
  return { ...exchange, route: { target, prefix: '/' }, recording: createRecording(explain), ...rest }
}

function textOf(exchange: Exchange, delivery = delivered, rest: Partial<ExplanationInputs> = {}) {
  const entry = ledgerEntry(exchange, delivery, { endedAt: 20, completedAt: 1_020, attributes })
  return explanationOf(exchange, { entry, entered: [], listener: undefined, delivery, endedAt: 20, ...rest })
}

function explained(...given: Parameters<typeof textOf>) {
  const text = textOf(...given)
  return text === undefined ? undefined : JSON.parse(text)
}

const passing = (name: string): Policy => ({ name, onRequest: () => undefined })
const refused: Delivery = { ...delivered, status: 403 }
const attempt = {
  target: 'fast',
  provider: 'openai',
  model: 'gpt-5-mini',
  sent: true,
  startedAt: 2,
  headAt: 5,
  endedAt: undefined,
  status: 200,
  upstreamRequestId: undefined,
  failure: undefined,
}

describe('the sample', () => {
  it('has failed requests by default', () => {
    expect(textOf(exchangeOf())).toBeUndefined()
    expect(textOf(exchangeOf(), refused)).toBeDefined()
    expect(textOf(exchangeOf(), { ...delivered, complete: false })).toBeDefined()
    expect(
      textOf(
        exchangeOf('errors', { log: { refusedBy: 'mcp: x', errorCode: undefined, failure: undefined } }),
      ),
    ).toBeDefined()
    const failedOver = exchangeOf()
    if (failedOver.recording)
      failedOver.recording.attempts = [{ ...attempt, failure: 'upstream_connect' }, attempt]
    expect(explained(failedOver).cause).toBe('served by fast after fast failed (upstream_connect)')
  })

  it('has all requests or none as configured', () => {
    expect(explained(exchangeOf('all'))).toMatchObject({ cause: 'served' })
    expect(textOf(exchangeOf('off'), refused)).toBeUndefined()
    expect(textOf(exchangeOf('errors', { recording: undefined }), refused)).toBeUndefined()
  })
})

describe('createExplainer', () => {
  it('limits explanations per second', () => {
    let now = 5_000
    const explain = createExplainer({ now: () => now, monotonic: () => now })
    const exchange = exchangeOf('all')
    const entry = ledgerEntry(exchange, delivered, { endedAt: 20, completedAt: 1_020, attributes })
    const inputs = { entry, entered: [], listener: undefined, delivery: delivered, endedAt: 20 }
    const count = () => Array.from({ length: 1_100 }, () => explain(exchange, inputs)).filter(Boolean).length
    expect(count()).toBe(1_000)
    now += 1_000
    expect(count()).toBe(1_000)
  })
})

describe('an explanation', () => {
  it('contains route, key, permissions and identity', () => {
    const exchange = exchangeOf('all')
    exchange.facts.apiKey = { id: 'k1', name: 'ci', group: 'platform', user: 'ada', note: 'private' }
    exchange.auth.models = { allows: () => true, patterns: ['gpt-*'] }
    exchange.auth.expiresAt = Date.UTC(2026, 0, 2)
    const listener = {
      explain: () => ({
        listener: 'default',
        candidates: [
          {
            target: { name: 'admin' } as never,
            hostname: '*',
            path: { kind: 'exact', value: '/admin' } as const,
            result: { kind: 'failed', condition: 'path', name: undefined } as const,
          },
        ],
      }),
    }
    expect(explained(exchange, delivered, { listener })).toMatchObject({
      key: {
        id: 'k1',
        name: 'ci',
        group: 'platform',
        models: ['gpt-*'],
        expiresAt: '2026-01-02T00:00:00.000Z',
      },
      identity: { user: 'ada', group: 'platform' },
      routing: {
        listener: 'default',
        route: 'llm',
        candidates: [
          { route: 'admin', hostname: '*', path: 'exact /admin', result: 'failed', condition: 'path' },
        ],
      },
    })
    expect(textOf(exchange)).not.toContain('private')
  })

  it('contains times of the phases and of steps that waited', () => {
    const exchange = exchangeOf('all')
    const times = exchange.recording?.times
    if (times) Object.assign(times, { backendAt: 4, repliedAt: 10, readyAt: 12 })
    times?.waits.push({ step: 'guardrails', durationMs: 1.234 })
    expect(explained(exchange, delivered, { entered: [passing('guardrails')] })).toMatchObject({
      times: {
        totalMs: 20,
        policiesMs: 4,
        waits: [{ step: 'guardrails', ms: 1.23 }],
        backendMs: 6,
        replyMs: 2,
        firstByteMs: 14,
        streamMs: 6,
      },
      policies: [{ policy: 'guardrails', result: 'passed', durationMs: 1.23 }],
    })
  })

  it('names the rule of a refusal', () => {
    const rules: JsonValue = [{ rule: 'deny rule 1', expression: 'jwt.admin', error: 'no such key: admin' }]
    const policy: Policy = { name: 'authorization', explain: () => ({ scope: 'llm', rules }) }
    const exchange = exchangeOf()
    exchange.log.refusedBy = 'authorization: deny rule 1'
    if (exchange.recording?.times) exchange.recording.times.stoppedBy = 'authorization'
    expect(explained(exchange, refused, { entered: [passing('origin'), policy] })).toMatchObject({
      cause: 'authorization: deny rule 1 of llm: jwt.admin (no such key: admin)',
      outcome: { status: 403, refusedBy: 'authorization: deny rule 1', stoppedBy: 'authorization' },
      policies: [
        { policy: 'origin', result: 'passed' },
        { policy: 'authorization', result: 'stopped', decision: { scope: 'llm', rules } },
      ],
    })
  })

  it('names the exhausted limit with its reset', () => {
    const exchange = exchangeOf()
    const { recording } = exchange
    exchange.log.refusedBy = 'rate-limit: llm: requests per minute'
    if (recording) {
      const status = { limit: 10, remaining: 0, resetSeconds: 12 }
      recordLimit(recording, { limit: 'llm: requests per minute', unit: 'requests', refused: true }, status)
    }
    expect(explained(exchange, { ...delivered, status: 429 })).toMatchObject({
      cause: 'the limit "llm: requests per minute" of 10 requests is exhausted; it resets in 12 s',
      limits: [
        { limit: 'llm: requests per minute', capacity: 10, remaining: 0, resetSeconds: 12, refused: true },
      ],
    })
  })

  it('names the guard of a refusal with its reason', () => {
    const exchange = exchangeOf()
    exchange.log.refusedBy = 'guardrail: pii'
    const decision = { guard: 'pii', phase: 'request' as const, durationMs: 0.5 }
    if (exchange.recording) {
      recordGuard(exchange.recording, { ...decision, outcome: 'reject', reason: 'email' })
      recordGuard(exchange.recording, { ...decision, outcome: 'reject', reason: 'email' })
    }
    const { cause, guards } = explained(exchange, refused)
    expect(cause).toBe('the guard "pii" refused the request (reject: email)')
    expect(guards).toMatchObject([{ guard: 'pii', outcome: 'reject', durationMs: 1 }])
  })

  it('names the MCP item of a refusal', () => {
    const exchange = exchangeOf()
    exchange.log.refusedBy = 'mcp-authorization: deny rule 1'
    const item = { kind: 'tool', name: 'drop', target: 'db' }
    if (exchange.recording)
      recordItem(exchange.recording, { rules: 'mcpAuthorization', item, permitted: false, results: [] })
    expect(explained(exchange).cause).toBe('deny rule 1 of mcpAuthorization refuses tool "drop" of target db')
  })

  it('names failed targets with codes, not messages', () => {
    const exchange = exchangeOf()
    const cause = Object.assign(new Error('connect 10.0.0.7 secret'), { code: 'ECONNREFUSED' })
    exchange.log.failure = new GatewayError('upstream_connect', 'upstream secret', { cause })
    exchange.log.refusedBy = 'upstream_connect'
    if (exchange.recording)
      exchange.recording.attempts = [
        { ...attempt, status: undefined, failure: 'upstream_connect', endedAt: 6 },
      ]
    const text = textOf(exchange, { ...delivered, status: 503 }) ?? ''
    expect(JSON.parse(text)).toMatchObject({
      cause: 'upstream_connect: fast failed (upstream_connect)',
      outcome: { failure: { code: 'upstream_connect', system: 'ECONNREFUSED' } },
      attempts: [{ target: 'fast', outcome: 'failed', startMs: 2, firstByteMs: 3, durationMs: 4 }],
    })
    expect(text).not.toContain('secret')
  })

  it('is complete if a policy cannot describe its decision', () => {
    const policy: Policy = {
      name: 'odd',
      explain() {
        throw new Error('odd')
      },
    }
    expect(explained(exchangeOf('all'), delivered, { entered: [policy] }).policies).toEqual([
      { policy: 'odd', result: 'passed', decision: 'not available' },
    ])
  })

  it('is bounded and names the omitted sections', () => {
    const policy: Policy = { name: 'large', explain: () => 'x'.repeat(maxExplanationLength) }
    const text = textOf(exchangeOf('all'), delivered, { entered: [policy] }) ?? ''
    expect(text.length).toBeLessThanOrEqual(maxExplanationLength)
    expect(JSON.parse(text)).toMatchObject({ cause: 'served', truncated: ['routing', 'policies'] })
  })
})

const budget = {
  budget: 'llm/team',
  name: 'team',
  value: '',
  unit: 'tokens' as const,
  limit: 100,
  used: 90,
  reserved: 5,
  estimate: 1,
  window: { start: 0, end: 3_600_000 },
  outcome: 'admitted' as const,
  settle: () => undefined,
}

describe('budgets', () => {
  it('name the one of a refusal with its reset', () => {
    const exchange = exchangeOf()
    exchange.log.refusedBy = 'budget: llm: team'
    exchange.budgets = [budget, { ...budget, unit: 'usd', limit: 2_500_000_000_000, outcome: 'refused' }]
    expect(explained(exchange, { ...delivered, status: 429 })).toMatchObject({
      cause: 'the budget "team" of 2.5 USD is used up; it resets at 1970-01-01T01:00:00.000Z',
      budgets: [{ left: 5 }, { limit: 2.5, outcome: 'refused' }],
    })
  })

  it('hide values beside user, group and key', () => {
    const exchange = exchangeOf('all')
    exchange.facts.apiKey = { id: 'k1', group: 'platform' }
    exchange.budgets = [
      { ...budget, value: 'platform' },
      { ...budget, value: 'ada@example.com' },
    ]
    const text = textOf(exchange) ?? ''
    expect(JSON.parse(text).budgets).toMatchObject([{ value: 'platform', left: 5 }, { value: '(not shown)' }])
    expect(text).not.toContain('ada@example.com')
  })
})
