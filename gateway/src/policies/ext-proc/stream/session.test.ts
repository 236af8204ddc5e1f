import { describe, expect, it } from 'vitest'
import type { OpenGrpcStream } from '../../../net/grpc-stream.ts'
import { createSession, type SessionEnd } from './session.ts'

const message = new Uint8Array([1])
const failure = new Error('metadata value "secret" is not valid')

function sessionOver(open: () => ReturnType<OpenGrpcStream>) {
  const ends: SessionEnd[] = []
  const slots = { taken: 0 }
  const session = createSession({
    open,
    acquire() {
      slots.taken += 1
      return true
    },
    onOver() {
      slots.taken -= 1
    },
    onEnded: (end) => ends.push(end),
    onReceived() {},
  })
  return { session, ends, slots }
}

describe('a session whose stream cannot be opened', () => {
  const failed = { kind: 'failed', reason: 'the stream could not be opened' }

  it('fails and releases its slot, if the library throws', () => {
    const { session, ends, slots } = sessionOver(() => {
      throw failure
    })
    session.send(message)
    expect([ends, session.end, slots.taken]).toEqual([[failed], failed, 0])
  })

  it('fails and releases its slot, if the library rejects', async () => {
    const { session, ends, slots } = sessionOver(() => Promise.reject(failure))
    session.send(message)
    await new Promise(setImmediate)
    expect([ends, session.end, slots.taken]).toEqual([[failed], failed, 0])
  })

  it('cancels a stream that accepts no message', async () => {
    let cancelled = 0
    const stream = {
      send() {
        throw failure
      },
      read() {},
      halfClose() {},
      cancel() {
        cancelled += 1
      },
    }
    const { session, ends, slots } = sessionOver(() => Promise.resolve(stream))
    session.send(message)
    await new Promise(setImmediate)
    expect([ends, slots.taken, cancelled]).toEqual([[failed], 0, 1])
    session.send(message)
    expect(slots.taken).toBe(0)
  })
})
