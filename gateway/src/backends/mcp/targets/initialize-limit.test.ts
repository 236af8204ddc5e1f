import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  collect,
  type FakeTarget,
  fakeTarget,
  fixtureContext,
  request,
  resultIn,
} from '../../../../test/fixtures/mcp.ts'
import { federate } from '../federation/federation.ts'
import { messageOf } from '../message/json-rpc.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const silent = (name: string) => fakeTarget(name, { behaviours: { initialize: () => undefined } })

async function initialize(members: readonly FakeTarget[], failOpen: boolean) {
  const options = { prefixMode: 'conditional', failOpen, version: '1', initializeTimeoutMs: 5_000 } as const
  const session = federate(members, options)?.target.open()
  const sink = collect()
  session?.request(request(0, 'initialize'), fixtureContext(), sink)
  await vi.advanceTimersByTimeAsync(4_999)
  const early = sink.failure ?? resultIn(sink)
  await vi.advanceTimersByTimeAsync(1)
  return { sink, early }
}

describe('a target that does not answer initialize', () => {
  it('fails it once the limit is over, and is cancelled', async () => {
    const target = silent('a')
    const { sink, early } = await initialize([target], false)
    expect(early).toBeUndefined()
    expect(sink.failure).toMatchObject({
      kind: 'error',
      error: { code: 'upstream_timeout', message: 'target "a" did not answer initialize within 5 s' },
    })
    expect(target.sessions[0]?.cancelled).toBe(1)
  })

  it('fails it though other messages come', async () => {
    const target = fakeTarget('a', {
      behaviours: {
        initialize(_params, sink) {
          sink.message(messageOf({ jsonrpc: '2.0', method: 'notifications/message' }))
          return undefined
        },
      },
    })
    const { sink } = await initialize([target], false)
    expect(sink.failure).toMatchObject({ error: { code: 'upstream_timeout' } })
  })

  it('fails a federation under failClosed', async () => {
    const { sink } = await initialize([fakeTarget('a'), silent('b')], false)
    expect(sink.failure).toMatchObject({ error: { message: expect.stringContaining('target "b"') } })
  })

  it('is left out of a federation under failOpen, and closed', async () => {
    const slow = silent('b')
    const { sink, early } = await initialize([fakeTarget('a'), slow], true)
    expect(early).toBeUndefined()
    expect(resultIn(sink)).toMatchObject({ serverInfo: { name: 'tollgate' } })
    expect(slow.sessions[0]?.closed).toBe(1)
  })

  it('has no timer left once it has answered', async () => {
    await initialize([fakeTarget('a')], false)
    expect(vi.getTimerCount()).toBe(0)
  })
})
