import { MessageChannel } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import { type Channel, PeerError } from '../../lib/planes/peers.ts'
import { createPeerLinks, type PeerLinks } from './peer-links.ts'

const open: PeerLinks[] = []

/** Peers of `count` data planes, all connected. */
function connected(count: number): PeerLinks[] {
  const planes = Array.from({ length: count }, (_, plane) => createPeerLinks(plane, count))
  for (const [one, peers] of planes.entries()) {
    for (const [other, others] of planes.entries()) {
      if (other <= one) continue
      const { port1, port2 } = new MessageChannel()
      peers.connect(other, port1)
      others.connect(one, port2)
    }
  }
  open.push(...planes)
  return planes
}

afterEach(() => {
  for (const peers of open.splice(0)) peers.close()
})

describe('calls', () => {
  it('reach the service of the named data plane', async () => {
    const planes = connected(3)
    for (const peers of planes) peers.serve('who', { call: (request, from) => [peers.self, from, request] })
    expect(await planes[0]?.call(2, 'who', 'x', 1_000)).toEqual([2, 0, 'x'])
  })

  it('reject with the message of an error, and for an absent service or data plane', async () => {
    const [one, two] = connected(2)
    two?.serve('fail', {
      call() {
        throw new Error('not found')
      },
    })
    await expect(one?.call(1, 'fail', 0, 1_000)).rejects.toThrow('not found')
    await expect(one?.call(1, 'absent', 0, 1_000)).rejects.toBeInstanceOf(PeerError)
    await expect(one?.call(2, 'fail', 0, 1_000)).rejects.toBeInstanceOf(PeerError)
  })

  it('reject when the data plane ends, and when it does not respond', async () => {
    const [one, two] = connected(2)
    two?.serve('never', { call: () => new Promise(() => {}) })
    await expect(one?.call(1, 'never', 0, 5)).rejects.toThrow('did not respond to never')
    const waiting = one?.call(1, 'never', 0, 60_000)
    two?.close()
    await expect(waiting).rejects.toThrow('data plane 1 ended')
  })

  it('to all data planes ignore those without the service, and report errors', async () => {
    const [one, two, three] = connected(3)
    const received: number[] = []
    three?.serve('count', { call: (request) => void received.push(Number(request)) })
    await one?.callAll('count', 7, 1_000)
    expect(received).toEqual([7])
    two?.serve('count', {
      call() {
        throw new Error('full')
      },
    })
    await expect(one?.callAll('count', 8, 1_000)).rejects.toThrow('full')
  })
})

describe('channels', () => {
  function opened(): Promise<{ near: Channel; far: Channel; planes: PeerLinks[] }> {
    const planes = connected(2)
    return new Promise((resolve) => {
      let near: Channel | undefined
      planes[1]?.serve('pipe', {
        open(far) {
          if (near !== undefined) resolve({ near, far, planes })
        },
      })
      near = planes[0]?.open(1, 'pipe', 'hello')
    })
  }

  it('transfer messages in order, also those sent before they are read', async () => {
    const { near, far } = await opened()
    for (let message = 0; message < 100; message++) near.post(message)
    await new Promise(setImmediate)
    const received: unknown[] = []
    await new Promise<void>((resolve) => {
      far.onMessage((message) => {
        received.push(message)
        if (received.length === 100) resolve()
      })
    })
    expect(received).toEqual(Array.from({ length: 100 }, (_, index) => index))
    const reply = new Promise((resolve) => near.onMessage(resolve))
    far.post('reply')
    expect(await reply).toBe('reply')
  })

  it('close if too many messages arrive before they are read', async () => {
    const { near, far } = await opened()
    const closed = Promise.all([near, far].map((end) => new Promise<void>((resolve) => end.onClose(resolve))))
    for (let message = 0; message < 1_100; message++) near.post(message)
    await closed
  })

  it('report the close of the other side once, after its messages', async () => {
    const { near, far } = await opened()
    const events: unknown[] = []
    const closed = new Promise<void>((resolve) => {
      far.onMessage((message) => events.push(message))
      far.onClose(() => {
        events.push('closed')
        resolve()
      })
    })
    near.post('last')
    near.close()
    near.post('too late')
    await closed
    expect(events).toEqual(['last', 'closed'])
  })

  it('close with the data plane of the other side', async () => {
    const { near, planes } = await opened()
    const closed = new Promise<void>((resolve) => near.onClose(resolve))
    planes[1]?.close()
    await closed
  })

  it('close at once if the service is absent', async () => {
    const [one] = connected(2)
    const channel = one?.open(1, 'absent', undefined)
    await new Promise<void>((resolve) => channel?.onClose(resolve))
  })
})
