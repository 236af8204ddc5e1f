import { duplexPair } from 'node:stream'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createPeer, type PeerEnd } from './peer.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

it('a peer that ends its side and reads nothing is cut off', async () => {
  const [near, far] = duplexPair()
  const ended = Promise.withResolvers<PeerEnd>()
  const peer = createPeer(near, {
    ...{ role: 'server', maxMessageBytes: 1_000, stallMs: 60_000 },
    onMessage: () => undefined,
    onEnd: ended.resolve,
  })
  peer.start()
  void peer.send(Buffer.alloc(1_000_000))
  far.end()
  expect(await ended.promise).toEqual({ kind: 'lost', error: undefined })
  expect(near.destroyed).toBe(false)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(near.destroyed).toBe(true)
})
