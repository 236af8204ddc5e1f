import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, throughPolicies } from '../../../test/fixtures/pipeline.ts'
import { takeLimitSnapshot } from './limit-snapshot.ts'
import { compileLocalRateLimit } from './local.ts'
import type { LocalRateLimitConfig } from './local-config.ts'

function limits(local: LocalRateLimitConfig) {
  const context = fixtureContext()
  const { beforeBody } = compileLocalRateLimit(local, context, { scope: 'llm' })
  return {
    context,
    send: (id: string, headers: Record<string, string> = {}) =>
      throughPolicies([beforeBody], fixtureExchange({ headers }, { apiKey: { id } })),
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
})
