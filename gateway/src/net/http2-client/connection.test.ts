import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, it } from 'vitest'
import { endAfter } from '../../../test/support/cleanup.ts'
import { createTurns } from '../../lib/scheduling/turns.ts'
import { createConnection } from './connection.ts'
import { createStream, hasCapacity, openStream, resetStream } from './connection-state.ts'
import { frameTypes } from './frames.ts'
import { receiveFrame } from './receive.ts'

const receiver = { onHeaders() {}, onData() {}, onSent() {}, onEnd() {} }

/** An open connection without a server. */
function open() {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  endAfter('test', () => {
    socket.destroy()
  })
  const events: string[] = []
  const connection = createConnection(
    socket as unknown as Socket,
    { turns: createTurns(), keepAliveMs: 10_000, probeMs: 10_000, idleMs: 10_000 },
    { available() {}, draining: () => events.push('draining'), closed() {} },
  )
  connection.state = 'open'
  return { connection, events }
}

function frame(type: number, streamId: number, payload = Buffer.alloc(0)) {
  return { type, flags: 0, streamId, payload }
}

it('a connection opens no stream behind the last id', () => {
  const { connection, events } = open()
  connection.nextId = 2 ** 31 - 3
  openStream(connection, createStream(new Uint8Array(), receiver))
  expect([hasCapacity(connection), events]).toEqual([true, []])
  openStream(connection, createStream(new Uint8Array(), receiver))
  expect([hasCapacity(connection), events]).toEqual([false, ['draining']])
  expect(connection.streams.size).toBe(2)
})

it('a connection permits control frames at intervals, and refuses many within a period', () => {
  const { connection } = open()
  const ping = () => receiveFrame(connection, frame(frameTypes.ping, 0, Buffer.alloc(8)))
  const start = connection.receivedAt
  for (let count = 0; count < 5_000; count += 1) {
    connection.receivedAt = start + count * 1_000
    ping()
  }
  expect(() => {
    for (let count = 0; count < 1_100; count += 1) ping()
  }).toThrow('too many control frames')
})

it('a connection refuses many frames of a cancelled stream', () => {
  const { connection } = open()
  const stream = createStream(new Uint8Array(), receiver)
  openStream(connection, stream)
  resetStream(stream)
  const late = () => receiveFrame(connection, frame(frameTypes.data, stream.id))
  for (let count = 0; count < 1_000; count += 1) late()
  expect(() => {
    for (let count = 0; count < 100; count += 1) late()
  }).toThrow('too many control frames')
})
