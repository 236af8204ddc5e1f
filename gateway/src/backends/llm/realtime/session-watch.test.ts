import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { ConnectionCalls } from '../../../pipeline/exchange.ts'
import { type SessionEnd, watchSession } from './session-watch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const times = { maxSessionMs: 60_000, idleMs: 20_000, pingMs: 5_000, checkMs: 1_000 }

function watched(refusal?: Reply) {
  const { clock } = fixtureContext()
  const current = fixtureExchange()
  const ends: SessionEnd[] = []
  const lost: string[] = []
  const rechecks: boolean[] = []
  const state = { isAlive: true, pings: 0, refusal, isOutdated: false }
  const peer = {
    start() {},
    send: () => undefined,
    close() {},
    ping() {
      state.pings += 1
    },
    takeActivity: () => state.isAlive,
  }
  const calls: ConnectionCalls = {
    current,
    get isOutdated() {
      return state.isOutdated
    },
    isGuarded: false,
    start: () => Promise.reject(new Error('unused')),
    async recheck(isExpired) {
      rechecks.push(isExpired)
      return state.refusal
    },
    checkRequest: async () => undefined,
    checkReply: async (_, reply) => reply,
  }
  const watch = watchSession(
    {
      ...{ client: peer, upstream: peer, calls, clock, requestModel: 'voice' },
      end: (end) => ends.push(end),
      endLate() {},
      lose: (side) => lost.push(side),
    },
    times,
  )
  return {
    ...{ watch, state, ends, lost, rechecks, current },
    async pass(seconds: number) {
      for (let second = 0; second < seconds && ends.length === 0; second += 1) {
        clock.advance(1_000)
        await vi.advanceTimersByTimeAsync(1_000)
      }
    },
  }
}

describe('a connection', () => {
  it('ends when a later configuration has policies of models', async () => {
    const session = watched()
    await session.pass(2)
    session.state.isOutdated = true
    await session.pass(1)
    expect(session.ends).toMatchObject([{ code: 1012 }])
  })

  it('ends without messages, and at its maximum duration with them', async () => {
    const idle = watched()
    await idle.pass(30)
    expect(idle.ends).toEqual([{ code: 1001, reason: 'no messages for too long' }])
    const busy = watched()
    for (let minute = 0; minute < 10; minute += 1) {
      await busy.pass(10)
      busy.watch.touch()
    }
    expect(busy.ends).toEqual([{ code: 1001, reason: 'maximum duration of a session reached' }])
  })

  it('is lost if a side sends nothing after three pings', async () => {
    const session = watched()
    session.state.isAlive = false
    await session.pass(14)
    expect([session.lost, session.state.pings]).toEqual([[], 4])
    await session.pass(1)
    expect(session.lost).toEqual(['client', 'upstream'])
  })

  it('ends when its credential or its route is not valid any more', async () => {
    const session = watched()
    await session.pass(2)
    expect(session.ends).toEqual([])
    session.state.refusal = { status: 401, headers: {}, body: undefined }
    await session.pass(1)
    expect(session.ends).toEqual([{ code: 1008, reason: 'the credential is not valid any more' }])
  })

  it('checks the credential again at its end', async () => {
    const session = watched()
    session.current.auth.expiresAt = 7_500
    await session.pass(4)
    expect(session.rechecks).toEqual([false, false, true, true])
  })

  it('with a login session lasts longer than the token of its claims', async () => {
    const session = watched()
    session.current.facts.jwt = { exp: 6 } as never
    session.current.auth.session = { endsAt: 7_500 }
    await session.pass(4)
    expect(session.rechecks).toEqual([false, false, true, true])
  })

  it('ends when the key does not permit the model any more', async () => {
    const session = watched()
    session.current.auth.models = { allows: () => false, patterns: [] }
    await session.pass(1)
    expect(session.ends).toEqual([{ code: 1008, reason: 'the key does not permit the model' }])
  })

  it('stops its timer', async () => {
    const session = watched()
    session.watch.stop()
    await session.pass(30)
    expect(session.ends).toEqual([])
  })
})
