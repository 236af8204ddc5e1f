import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type FixtureContext,
  fixtureContext,
  fixtureExchange,
  fixtureUsage,
  textOf,
  throughPolicies,
} from '../../../test/fixtures/pipeline.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Facts } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { createRecording } from '../../pipeline/recording/recording.ts'
import { compileLocalRateLimit } from './local.ts'
import type { LocalRateLimitConfig } from './local-config.ts'

function policiesOf(config: LocalRateLimitConfig, context: CompileContext, place = 'llm'): Policy[] {
  const { beforeBody, afterBody } = compileLocalRateLimit(config, context, { scope: place })
  return [beforeBody, afterBody].filter((policy) => policy !== undefined)
}

function call(policies: readonly Policy[], facts: Partial<Facts> = {}, method = 'POST'): Reply {
  return throughPolicies(policies, fixtureExchange({ method }, facts))
}

function spend(policies: readonly Policy[], totalTokens: number): Reply {
  return call(policies, { usage: fixtureUsage(totalTokens) })
}

function limitStatus(reply: Reply): string {
  const { headers } = reply
  const names = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after']
  return `${reply.status} ${names.map((name) => headers[name] ?? '-').join(' ')}`
}

describe('request limits', () => {
  it('allow base and burst, then answer 429 as plain text with the time to wait', () => {
    const context = fixtureContext()
    const policies = policiesOf([{ requests: 2, unit: 'Minutes', burst: 1 }], context)
    expect(limitStatus(call(policies))).toBe('200 3 2 60 -')
    expect(limitStatus(call(policies))).toBe('200 3 1 60 -')
    context.clock.advance(1)
    expect(limitStatus(call(policies))).toBe('200 3 0 60 -')
    context.clock.advance(30_000)
    const refused = call(policies)
    expect(limitStatus(refused)).toBe('429 3 0 30 30')
    expect(refused.headers['content-type']).toBe('text/plain')
    expect(textOf(refused)).toBe('rate limit exceeded')
  })

  it('give back the base, not the burst, after one unit', () => {
    const context = fixtureContext()
    const policies = policiesOf([{ requests: 2, unit: 'Seconds', burst: 3 }], context)
    for (let count = 0; count < 5; count++) call(policies)
    context.clock.advance(1000)
    expect(limitStatus(call(policies))).toBe('200 5 1 1 -')
  })

  it('read the bucket form like the form per unit', () => {
    const policies = policiesOf([{ maxTokens: 7, tokensPerFill: 3, fillInterval: '90s' }], fixtureContext())
    expect(limitStatus(call(policies))).toBe('200 7 6 90 -')
  })

  it('pass exactly the limit of 500 requests that come at once', () => {
    const policies = policiesOf([{ requests: 50, unit: 'Hours' }], fixtureContext())
    const statuses = Array.from({ length: 500 }, () => call(policies).status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(50)
    expect(statuses.filter((status) => status === 429)).toHaveLength(450)
  })

  it('use up nothing of any limit when one refuses', () => {
    const context = fixtureContext()
    const policies = policiesOf(
      [
        { requests: 10, unit: 'Hours' },
        { requests: 1, unit: 'Seconds' },
      ],
      context,
    )
    call(policies)
    for (let count = 0; count < 100; count++) expect(call(policies).status).toBe(429)
    context.clock.advance(1000)
    call(policies)
    context.clock.advance(1000)
    expect(limitStatus(call(policies.slice(0, 1)))).toBe('200 1 0 1 -')
    context.clock.advance(1000)
    const passed = Array.from({ length: 20 }, () => {
      context.clock.advance(1000)
      return call(policies).status
    })
    expect(passed.filter((status) => status === 200)).toHaveLength(7)
  })

  it('show the limit with the fewest requests left', () => {
    const policies = policiesOf(
      [
        { requests: 9, unit: 'Seconds' },
        { requests: 4, unit: 'Minutes' },
        { requests: 6, unit: 'Hours' },
      ],
      fixtureContext(),
    )
    expect(limitStatus(call(policies))).toBe('200 4 3 60 -')
  })

  it('replace the upstream’s own figures', () => {
    const policies = policiesOf([{ requests: 5, unit: 'Seconds' }], fixtureContext())
    const exchange = fixtureExchange()
    const reply = { status: 200, headers: { 'x-ratelimit-remaining': '999' }, body: undefined }
    policies[0]?.onRequest?.(exchange)
    expect(policies[0]?.onReply?.(exchange, reply)).toMatchObject({
      headers: { 'x-ratelimit-remaining': '4' },
    })
  })

  it('count decisions under a name of place and limit, and name the limit for the log', () => {
    const context = fixtureContext()
    const policies = policiesOf(
      [
        { requests: 1, unit: 'Minutes' },
        { requests: 100, unit: 'Hours', name: 'daily' },
      ],
      context,
    )
    call(policies)
    const exchange = fixtureExchange()
    throughPolicies(policies, exchange)
    expect(exchange.log.refusedBy).toBe('rate-limit: llm: requests per minute')
    expect(Object.fromEntries(context.decisions)).toEqual({
      'llm: requests per minute allowed': 1,
      'llm: requests per minute refused': 1,
      'llm: daily allowed': 1,
    })
  })
})

describe('token limits', () => {
  it('pass while anything is left, charge at the end, and refuse until the refill', () => {
    const context = fixtureContext()
    const policies = policiesOf([{ tokens: 100, unit: 'Minutes' }], context)
    expect(limitStatus(spend(policies, 99))).toBe('200 100 100 60 -')
    expect(limitStatus(spend(policies, 5_000))).toBe('200 100 1 60 -')
    context.clock.advance(20_000)
    expect(limitStatus(spend(policies, 1))).toBe('429 100 0 40 40')
    context.clock.advance(40_000)
    expect(limitStatus(spend(policies, 1))).toBe('200 100 100 60 -')
  })

  it('charge to the time of the end, not of the beginning', () => {
    const context = fixtureContext()
    const policies = policiesOf([{ tokens: 10, unit: 'Seconds' }], context)
    const exchange = fixtureExchange()
    policies[0]?.onRequest?.(exchange)
    context.clock.advance(1500)
    exchange.facts.usage = fixtureUsage(4)
    policies[0]?.onEnd?.(exchange)
    expect(limitStatus(call(policies))).toBe('200 10 6 1 -')
  })

  it('charge a request once, and nothing without a usable count', () => {
    const policies = policiesOf([{ tokens: 100, unit: 'Minutes' }], fixtureContext())
    const exchange = fixtureExchange({}, { usage: fixtureUsage(10) })
    throughPolicies(policies, exchange)
    policies[0]?.onEnd?.(exchange)
    for (const count of [Number.NaN, -50, 0]) spend(policies, count)
    call(policies)
    expect(limitStatus(call(policies))).toContain('200 100 90')
    spend(policies, Number.POSITIVE_INFINITY)
    expect(call(policies).status).toBe(429)
  })

  it('give back the request units of a request they refuse', () => {
    const context = fixtureContext()
    const policies = policiesOf(
      [
        { requests: 3, unit: 'Hours' },
        { tokens: 10, unit: 'Minutes' },
      ],
      context,
    )
    spend(policies, 10)
    for (let count = 0; count < 10; count++) expect(call(policies).status).toBe(429)
    context.clock.advance(60_000)
    expect(limitStatus(call(policies))).toBe('200 3 1 3540 -')
  })

  it('charge calls that the provider has started, also above the limit', () => {
    const policies = policiesOf([{ tokens: 10, unit: 'Minutes', key: 'apiKey.id' }], fixtureContext())
    const exchange = fixtureExchange({}, { apiKey: { id: 'a' }, usage: fixtureUsage(4) })
    exchange.llm = {
      operation: { operation: 'chat', api: 'chat_completions' },
      estimate: undefined,
      message: undefined,
    }
    exchange.llm.isCommitted = true
    for (let count = 0; count < 3; count += 1) throughPolicies(policies, { ...exchange, limits: undefined })
    expect(call(policies, { apiKey: { id: 'a' } }).status).toBe(429)
    expect(throughPolicies(policies, { ...exchange, limits: undefined }).status).toBe(200)
  })

  it('do not limit reads, which cost no tokens', () => {
    const policies = policiesOf([{ tokens: 10, unit: 'Minutes' }], fixtureContext())
    spend(policies, 10)
    expect(call(policies, {}, 'POST').status).toBe(429)
    expect(limitStatus(call(policies, {}, 'GET'))).toBe('200 - - - -')
  })

  it('show whichever of requests and tokens has the smaller share left', () => {
    const policies = policiesOf(
      [
        { requests: 10, unit: 'Minutes' },
        { tokens: 1000, unit: 'Hours' },
      ],
      fixtureContext(),
    )
    expect(limitStatus(spend(policies, 900))).toBe('200 10 9 60 -')
    expect(limitStatus(call(policies))).toBe('200 1000 100 3600 -')
  })
})

describe('limits with a key', () => {
  const perKey: LocalRateLimitConfig = [{ requests: 1, unit: 'Minutes', key: 'apiKey.id' }]

  it('count every value apart', () => {
    const policies = policiesOf(perKey, fixtureContext())
    expect(call(policies, { apiKey: { id: 'a' } }).status).toBe(200)
    expect(call(policies, { apiKey: { id: 'b' } }).status).toBe(200)
    expect(call(policies, { apiKey: { id: 'a' } }).status).toBe(429)
  })

  it('let requests without a value share one count', () => {
    const policies = policiesOf(perKey, fixtureContext())
    expect(call(policies).status).toBe(200)
    expect(call(policies, { apiKey: {} }).status).toBe(429)
    expect(call(policies, { apiKey: { id: null } }).status).toBe(429)
    expect(call(policies, { apiKey: { id: ['x'] } }).status).toBe(429)
    expect(call(policies, { apiKey: { id: 7 } }).status).toBe(200)
  })

  it('wait for the body when the key names it', () => {
    const config: LocalRateLimitConfig = [{ requests: 1, unit: 'Minutes', key: 'llmRequest.model' }]
    const { beforeBody, afterBody } = compileLocalRateLimit(config, fixtureContext(), { scope: 'llm' })
    expect(beforeBody).toBeUndefined()
    const policies = [afterBody].filter((policy) => policy !== undefined)
    expect(call(policies, { llmRequest: { model: 'm' } }).status).toBe(200)
    expect(call(policies, { llmRequest: { model: 'n' } }).status).toBe(200)
    expect(call(policies, { llmRequest: { model: 'm' } }).status).toBe(429)
  })

  it('charge tokens to the value even after its full bucket was forgotten', () => {
    const context = fixtureContext()
    const config: LocalRateLimitConfig = [{ tokens: 10, unit: 'Minutes', key: 'apiKey.id' }]
    const { afterBody } = compileLocalRateLimit(config, context, { scope: 'llm', maxKeys: 1 })
    const slow = fixtureExchange({}, { apiKey: { id: 'slow' } })
    afterBody?.onRequest?.(slow)
    const other = fixtureExchange({}, { apiKey: { id: 'other' } })
    afterBody?.onRequest?.(other)
    slow.facts.usage = fixtureUsage(10)
    afterBody?.onEnd?.(slow)
    expect(throughPolicies([afterBody], fixtureExchange({}, { apiKey: { id: 'slow' } })).status).toBe(429)
  })
})

describe('a reload', () => {
  const two: LocalRateLimitConfig = [
    { requests: 10, unit: 'Minutes' },
    { tokens: 100, unit: 'Minutes' },
  ]

  it('retains usage when the rate changes', () => {
    const context = fixtureContext()
    for (let count = 0; count < 4; count++) call(policiesOf([{ requests: 10, unit: 'Minutes' }], context))
    expect(limitStatus(call(policiesOf([{ requests: 7, unit: 'Minutes', burst: 1 }], context)))).toBe(
      '200 8 3 60 -',
    )
    expect(call(policiesOf([{ requests: 3, unit: 'Minutes' }], context)).status).toBe(429)
  })

  it('keeps counts apart when the list is put in another order', () => {
    const context = fixtureContext()
    const limits: LocalRateLimitConfig = [
      { requests: 10, unit: 'Seconds' },
      { requests: 20, unit: 'Seconds', key: 'apiKey.id' },
      { requests: 5, unit: 'Seconds', name: 'own' },
      { requests: 30, unit: 'Seconds' },
    ]
    call(policiesOf(limits.slice(2, 3), context))
    call(policiesOf(limits.slice(2, 3), context))
    call(policiesOf(limits, context))
    expect(limitStatus(call(policiesOf(limits.toReversed(), context)))).toBe('200 5 1 1 -')
    expect(limitStatus(call(policiesOf(limits.slice(0, 1), context)))).toBe('200 10 7 1 -')
  })

  it('distinguishes limits with different rates by size, not by order', () => {
    const context = fixtureContext()
    const small: LocalRateLimitConfig = [{ requests: 10, unit: 'Seconds' }]
    for (let count = 0; count < 3; count++) call(policiesOf(small, context))
    const large: LocalRateLimitConfig = [{ requests: 30, unit: 'Seconds' }]
    expect(limitStatus(call(policiesOf([...large, ...small], context)))).toBe('200 10 6 1 -')
  })

  it('keeps places apart', () => {
    const context = fixtureContext()
    call(policiesOf([{ requests: 1, unit: 'Hours' }], context, 'llm'))
    expect(call(policiesOf([{ requests: 1, unit: 'Hours' }], context, 'route a')).status).toBe(200)
  })

  it('counts the tokens of a request that began before it', () => {
    const context = fixtureContext()
    const exchange = fixtureExchange({}, { usage: fixtureUsage(100) })
    const before = policiesOf(two, context)
    for (const policy of before) policy.onRequest?.(exchange)
    const after = policiesOf(two, context)
    for (const policy of before) policy.onEnd?.(exchange)
    expect(call(after).status).toBe(429)
  })

  it.each([
    ['one count', undefined],
    ['a count for each value', 'apiKey.id'],
  ])('that raises a limit retains the usage of earlier requests: %s', (_, key) => {
    const context = fixtureContext()
    const entry = (tokens: number): LocalRateLimitConfig => [
      { tokens, unit: 'Hours', ...(key === undefined ? {} : { key }) },
    ]
    const facts = { apiKey: { id: 'a' }, usage: fixtureUsage(10) }
    const before = policiesOf(entry(20), context)
    const slow = fixtureExchange({}, { ...facts })
    for (const policy of before) policy.onRequest?.(slow)
    const after = policiesOf(entry(1_000), context)
    call(after, { ...facts, usage: fixtureUsage(900) })
    for (const policy of before) policy.onEnd?.(slow)
    expect(limitStatus(call(after, facts))).toBe('200 1000 90 3600 -')
  })

  it('that lowers a limit drops excess usage with the next refill, applied or not', () => {
    const context = fixtureContext()
    const before = policiesOf([{ requests: 3, unit: 'Minutes' }], context)
    for (let count = 0; count < 3; count++) call(before)
    const after = policiesOf([{ requests: 1, unit: 'Minutes' }], context)
    context.clock.advance(60_000)
    expect(call(after).status).toBe(200)
  })

  it.each([
    ['one count', undefined],
    ['a count for each value', 'apiKey.id'],
  ])('that raises a limit is not undone by requests on the older configuration: %s', (_, key) => {
    const context = fixtureContext()
    const entry = (requests: number): LocalRateLimitConfig => [
      { requests, unit: 'Hours', name: 'n', ...(key === undefined ? {} : { key }) },
    ]
    const facts = { apiKey: { id: 'a' } }
    const older = policiesOf(entry(2), context)
    context.clock.advance(1)
    const newer = policiesOf(entry(5), context)
    for (let count = 0; count < 4; count++) expect(call(newer, facts).status).toBe(200)
    expect(limitStatus(call(older, facts))).toBe('429 2 0 3600 3600')
    expect(limitStatus(call(newer, facts))).toBe('200 5 0 3600 -')
    expect(call(newer, facts).status).toBe(429)
  })

  it('that is given up puts no numbers in force', () => {
    const context = fixtureContext()
    const entry = (unit: 'Hours' | 'Seconds'): LocalRateLimitConfig => [{ requests: 2, unit, name: 'n' }]
    const running = policiesOf(entry('Hours'), context)
    call(running)
    call(running)
    policiesOf(entry('Seconds'), context)
    context.clock.advance(60_000)
    policiesOf(entry('Hours'), context)
    expect(call(running).status).toBe(429)
  })
})

describe('several places', () => {
  it('show the closest limit of all, and give back across places', () => {
    const context = fixtureContext()
    const gateway = policiesOf([{ requests: 5, unit: 'Hours' }], context, 'gateway')
    const route = policiesOf([{ requests: 2, unit: 'Minutes' }], context, 'route')
    const both = [...gateway, ...route]
    expect(limitStatus(call(both))).toBe('200 2 1 60 -')
    call(both)
    expect(limitStatus(call(both))).toBe('429 2 0 60 60')
    expect(limitStatus(call(gateway))).toBe('200 5 2 3600 -')
  })
})

/** A limit as one would write it on paper: a level, and a refill whenever its time has come. */
type WrittenLimit = {
  counts: 'requests' | 'tokens'
  base: number
  burst: number
  unit: 'Seconds' | 'Minutes' | 'Hours'
}
type PaperNumbers = { base: number; capacity: number }
type PaperLimit = {
  used: number
  inForce: PaperNumbers
  /** In force from the next request on. */
  next: PaperNumbers
  intervalMs: number
  nextRefillAt: number
}

const unitMs = { Seconds: 1000, Minutes: 60_000, Hours: 3_600_000 }
const limitArbitrary = fc.record({
  counts: fc.constantFrom<'requests' | 'tokens'>('requests', 'tokens'),
  base: fc.integer({ min: 1, max: 6 }),
  burst: fc.nat(4),
  unit: fc.constantFrom<'Seconds' | 'Minutes' | 'Hours'>('Seconds', 'Minutes', 'Hours'),
})
const stepArbitrary = fc.oneof(
  fc.record({ kind: fc.constant('call' as const), tokens: fc.nat(4) }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 200_000 }) }),
  fc.record({
    kind: fc.constant('reload' as const),
    which: fc.nat(3),
    base: fc.integer({ min: 1, max: 4 }),
    burst: fc.nat(3),
  }),
)

describe('any sequence of requests', () => {
  it('meets the decisions of limits kept on paper', () => {
    fc.assert(
      fc.property(
        fc.array(limitArbitrary, { minLength: 1, maxLength: 4 }),
        fc.array(stepArbitrary, { maxLength: 60 }),
        (limits, steps) => {
          const context = fixtureContext()
          let policies = policiesOf(written(limits), context)
          let current = limits
          const paper = limits.map(({ base, burst, unit }) => ({
            used: 0,
            inForce: { base, capacity: base + burst },
            next: { base, capacity: base + burst },
            intervalMs: unitMs[unit],
            nextRefillAt: context.clock.monotonic() + unitMs[unit],
          }))
          for (const step of steps) {
            if (step.kind === 'wait') context.clock.advance(step.ms)
            else if (step.kind === 'call') checkCall(step.tokens)
            else reload(step)
          }

          /** What is used stays used, and a bucket in turned-round order is still the same bucket. */
          function reload({ which, base, burst }: { which: number; base: number; burst: number }) {
            current = current.map((limit, index) => (index === which ? { ...limit, base, burst } : limit))
            policies = policiesOf(written(current).reverse(), context)
            for (const limit of paper) refillOnPaper(limit, context)
            const limit = paper[which]
            if (limit !== undefined) limit.next = { base, capacity: base + burst }
          }

          function checkCall(tokens: number) {
            for (const limit of paper) {
              limit.inForce = limit.next
              refillOnPaper(limit, context)
            }
            const expected = paper.every(({ used, inForce }) => used < inForce.capacity) ? 200 : 429
            const reply = spend(policies, tokens)
            expect(reply.status).toBe(expected)
            if (expected === 429) return expect(textOf(reply)).toBe('rate limit exceeded')
            for (const [index, limit] of paper.entries()) {
              const cost = limits[index]?.counts === 'requests' ? 1 : tokens
              limit.used = Math.min(limit.inForce.capacity, limit.used + cost)
            }
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  it('admits a client that waits for the reported reset', () => {
    fc.assert(
      fc.property(
        fc.array(limitArbitrary, { minLength: 1, maxLength: 4 }),
        fc.array(stepArbitrary, { maxLength: 40 }),
        (limits, steps) => {
          const context = fixtureContext()
          const policies = policiesOf(written(limits), context)
          for (const step of steps) {
            if (step.kind === 'wait') context.clock.advance(step.ms + 0.25)
            else if (step.kind === 'call') spend(policies, step.tokens)
          }
          const refused = exhaust(policies)
          context.clock.advance(Number(refused.headers['x-ratelimit-reset']) * 1000)
          expect(call(policies).status).toBe(200)
        },
      ),
      { numRuns: 300 },
    )
  })
})

function written(limits: readonly WrittenLimit[]): LocalRateLimitConfig {
  return limits.map(({ counts, base, burst, unit }, index) => {
    const rest = { unit, burst, name: `limit ${index}` }
    return counts === 'requests' ? { requests: base, ...rest } : { tokens: base, ...rest }
  })
}

function refillOnPaper(limit: PaperLimit, { clock }: FixtureContext) {
  const { base, capacity } = limit.inForce
  limit.used = Math.min(limit.used, capacity)
  while (clock.monotonic() >= limit.nextRefillAt) {
    limit.used = Math.max(0, limit.used - base)
    limit.nextRefillAt += limit.intervalMs
  }
}

function exhaust(policies: readonly Policy[]): Reply {
  for (;;) {
    const reply = spend(policies, 3)
    if (reply.status === 429) return reply
  }
}

describe('limits by the address of the client', () => {
  const from = (address: string) => ({ source: { address, port: 1 } })
  const statuses = (key: string, ...addresses: string[]) => {
    const policies = policiesOf([{ requests: 1, unit: 'Minutes', key }], fixtureContext())
    return addresses.map((address) => call(policies, from(address)).status)
  }

  it('count IPv6 by /64 and IPv4 by address', () => {
    expect(statuses('source.address', '2001:db8::1', '2001:db8::2', '2001:db8:0:1::1')).toEqual([
      200, 429, 200,
    ])
    expect(statuses('source.address', '10.0.0.1', '10.0.0.2', '10.0.0.1')).toEqual([200, 200, 429])
  })

  it('count other expressions over the address by their value', () => {
    expect(statuses('string(source.address)', '2001:db8::1', '2001:db8::2')).toEqual([200, 200])
    const composite = '"a/" + source.network'
    expect(statuses(composite, '2001:db8::1', '2001:db8::2', '10.0.0.1')).toEqual([200, 429, 200])
  })
})

describe('limits with an id', () => {
  it('share one count over scopes, also after a change of the rate', () => {
    const context = fixtureContext()
    const limit = { id: 'team', requests: 2, unit: 'Hours' } as const
    const one = policiesOf([limit], context, 'route one')
    const two = policiesOf([limit], context, 'route two')
    const other = policiesOf([{ requests: 2, unit: 'Hours' }], context, 'route two')
    expect([call(one), call(two), call(one), call(other)].map(({ status }) => status)).toEqual([
      200, 200, 429, 200,
    ])
    const larger = policiesOf([{ ...limit, requests: 3 }], context, 'route three')
    expect([call(larger), call(larger)].map(({ status }) => status)).toEqual([200, 429])
  })

  it('have separate counts per key value', () => {
    const context = fixtureContext()
    const limit = { id: 'team', requests: 1, unit: 'Hours', key: 'request.method' } as const
    const [one, two] = ['route one', 'route two'].map((place) => policiesOf([limit], context, place))
    expect(call(one ?? [], {}, 'GET').status).toBe(200)
    expect([call(two ?? [], {}, 'GET'), call(two ?? [], {}, 'PUT')].map(({ status }) => status)).toEqual([
      429, 200,
    ])
  })
})

describe('the recording of a request', () => {
  function recorded(policies: readonly Policy[]) {
    const exchange = fixtureExchange()
    exchange.recording = createRecording('off')
    throughPolicies(policies, exchange)
    return exchange.recording.limits
  }

  it('has every limit with what was left', () => {
    const limits: LocalRateLimitConfig = [
      { requests: 1, unit: 'Minutes' },
      { requests: 5, unit: 'Hours' },
      { tokens: 100, unit: 'Minutes' },
    ]
    const policies = policiesOf(limits, fixtureContext())
    const perMinute = { limit: 'llm: requests per minute', unit: 'requests', capacity: 1, resetSeconds: 60 }
    const perHour = { limit: 'llm: requests per hour', unit: 'requests', capacity: 5, resetSeconds: 3_600 }
    const tokens = { limit: 'llm: tokens per minute', unit: 'tokens', capacity: 100, resetSeconds: 60 }
    expect(recorded(policies)).toEqual([
      { ...perMinute, remaining: 0, refused: false },
      { ...perHour, remaining: 4, refused: false },
      { ...tokens, remaining: 100, refused: false },
    ])
    expect(recorded(policies)).toEqual([
      { ...perMinute, remaining: 0, refused: true },
      { ...perHour, remaining: 4, refused: false },
    ])
  })
})
