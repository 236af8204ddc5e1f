import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, throughPolicies } from '../../../test/fixtures/pipeline.ts'
import { SecretText } from '../../cel/secret-text.ts'
import {
  type GlobalLimitSnapshot,
  mergeLimitSnapshots,
  noLimits,
  takeLimitSnapshot,
} from './limit-snapshot.ts'
import { compileLocalRateLimit } from './local.ts'
import type { LocalRateLimitConfig } from './local-config.ts'

function limits(local: LocalRateLimitConfig) {
  const context = fixtureContext()
  const { beforeBody } = compileLocalRateLimit(local, context, { scope: 'llm' })
  return {
    context,
    send: (id: string, headers: Record<string, string> = {}) =>
      throughPolicies(
        [beforeBody],
        fixtureExchange({ headers }, { apiKey: { id }, key: new SecretText(`key-of-${id}`) }),
      ),
    read: () => takeLimitSnapshot([{ place: 'llm', local, global: undefined }], context),
  }
}

describe('readings', () => {
  it('report the remaining units without a change', async () => {
    const { context, send, read } = limits([{ requests: 5, unit: 'Minutes', burst: 5 }])
    send('a')
    send('a')
    expect((await read()).local).toEqual([
      {
        place: 'llm',
        limit: 'llm: requests per minute',
        counts: 'requests',
        capacity: 10,
        refill: 5,
        intervalSeconds: 60,
        state: { remaining: 8, resetSeconds: 60 },
      },
    ])
    context.clock.advance(61_000)
    expect((await read()).local[0]?.state).toEqual({ remaining: 10, resetSeconds: 59 })
    expect(send('a').headers['x-ratelimit-remaining']).toBe('9')
  })

  it('report the number of values and those with the least remaining', async () => {
    const { send, read } = limits([{ requests: 3, unit: 'Minutes', key: 'apiKey.id' }])
    for (let count = 0; count < 3; count++) send('busy')
    for (let index = 0; index < 20; index++) send(`idle-${index}`)
    const state = (await read()).local[0]?.state
    if (state === undefined || !('fullest' in state)) throw new Error('not keyed')
    expect([state.values, state.exhausted, state.fullest.length]).toEqual([21, 1, 10])
    expect(state.fullest[0]).toEqual({ value: 'busy', remaining: 0, resetSeconds: 60 })
    expect((await read()).local[0]?.state).toEqual(state)
  })

  it('do not reveal client data', async () => {
    const { send, read } = limits([{ requests: 3, unit: 'Minutes', key: 'request.headers["authorization"]' }])
    send('a', { authorization: 'Bearer secret' })
    const text = JSON.stringify(await read())
    expect(text).not.toContain('secret')
    expect(text).toMatch(/"value":"sha256:[0-9a-f]{16}"/)
  })

  it.each(['apiKey.key', 'apiKey.key.unredacted()', 'toJson([apiKey.key])'])(
    'count each credential of %s separately, and do not reveal it',
    async (key) => {
      const { send, read } = limits([{ requests: 1, unit: 'Minutes', key }])
      expect([send('ann').status, send('bob').status, send('ann').status]).toEqual([200, 200, 429])
      expect(JSON.stringify(await read())).not.toMatch(/key-of-(?:ann|bob)/)
    },
  )
})

describe('readings of several data planes', () => {
  const limit: GlobalLimitSnapshot = {
    ...{ place: 'llm', limit: 'llm: global', domain: 'd', service: 'limits:1', timeoutMs: 100 },
    ...{ failureMode: 'failClosed', descriptors: [] },
    checks: { allowed: 1, refused: 2, failed_open: 3, failed_closed: 4 },
    reports: { sent: 1, over_limit: 2, unknown: 3, failed: 4, dropped: 5, pending: 6 },
    lastFailure: undefined,
  }
  const early = { at: '2026-01-01T00:00:00.000Z', reason: 'early' }
  const late = { at: '2026-01-01T00:00:01.000Z', reason: 'late' }

  it('add up the counts of global limits, and have the latest failure', () => {
    const { global } = mergeLimitSnapshots([
      { ...noLimits, global: [limit] },
      { ...noLimits, global: [{ ...limit, lastFailure: late }] },
      {
        ...noLimits,
        global: [
          { ...limit, lastFailure: early },
          { ...limit, place: 'other' },
        ],
      },
    ])
    expect(global).toEqual([
      {
        ...limit,
        checks: { allowed: 3, refused: 6, failed_open: 9, failed_closed: 12 },
        reports: { sent: 3, over_limit: 6, unknown: 9, failed: 12, dropped: 15, pending: 18 },
        lastFailure: late,
      },
    ])
  })

  it('have the local limits of one data plane, which are those of all', async () => {
    const { send, read } = limits([{ requests: 5, unit: 'Minutes' }])
    send('a')
    const snapshot = await read()
    expect(mergeLimitSnapshots([snapshot, snapshot])).toEqual(snapshot)
    expect(mergeLimitSnapshots([])).toEqual(noLimits)
  })
})
