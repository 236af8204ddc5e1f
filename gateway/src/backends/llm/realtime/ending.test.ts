import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import type { WebSocketPeer } from '../../../net/websocket/peer.ts'
import { createEnding } from './ending.ts'
import type { RealtimeResponses } from './responses.ts'

it('a response that starts after the disconnect of its client is cancelled, and its usage awaited', () => {
  const seen: string[] = []
  const peer = (side: string): WebSocketPeer => ({
    start() {},
    ping() {},
    takeActivity: () => true,
    send: (text) => void seen.push(`${side} ${Buffer.from(text).toString()}`),
    close: (code) => void seen.push(`${side} closed ${code}`),
  })
  const state = { isIdle: false }
  const responses = { isIdle: () => state.isIdle, activeIds: () => [] as string[] }
  const far = new PassThrough()
  const sides = { client: peer('client'), upstream: peer('upstream'), far }
  const ending = createEnding({
    ...sides,
    responses: responses as Partial<RealtimeResponses> as RealtimeResponses,
  })
  ending.responseStarted('r0')
  expect(seen).toEqual([])
  ending.endUpstream({ code: 1001, reason: 'client disconnected' })
  expect(seen).toEqual([])
  ending.responseStarted('r1')
  expect(seen).toEqual(['upstream {"type":"response.cancel","response_id":"r1"}'])
  ending.responseEnded()
  expect(seen).toHaveLength(1)
  state.isIdle = true
  ending.responseEnded()
  expect(seen[1]).toBe('upstream closed 1001')
  far.destroy()
})
