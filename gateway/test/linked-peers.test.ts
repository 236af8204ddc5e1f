import { afterEach, describe, expect, it } from 'vitest'
import { type Channel, PeerError } from '../src/lib/planes/peers.ts'
import { type LinkedPeers, linkMemory, linkPeers } from './support/linked-peers.ts'

let linked: LinkedPeers | undefined
afterEach(() => linked?.close())

function link(count: number): LinkedPeers {
  linked = linkPeers(count)
  return linked
}

describe('linked peers', () => {
  it('call services of one or all other planes', async () => {
    const { peers } = link(3)
    const calls: string[] = []
    for (const plane of peers) {
      plane.serve('echo', { call: (request, from) => calls.push(`${from}>${plane.self} ${String(request)}`) })
    }
    expect(await peers[0]?.call(2, 'echo', 'a', 1_000)).toBe(1)
    await peers[1]?.callAll('echo', 'b', 1_000)
    expect(calls.toSorted()).toEqual(['0>2 a', '1>0 b', '1>2 b'])
  })

  it('reject a call of an absent service, a failed service, and an ended plane', async () => {
    const { peers, end } = link(2)
    await expect(peers[0]?.call(1, 'absent', {}, 1_000)).rejects.toThrow(PeerError)
    await peers[0]?.callAll('absent', {}, 1_000)
    peers[1]?.serve('failing', { call: () => Promise.reject(new Error('no luck')) })
    await expect(peers[0]?.call(1, 'failing', {}, 1_000)).rejects.toThrow('no luck')
    await expect(peers[0]?.callAll('failing', {}, 1_000)).rejects.toThrow('no luck')
    peers[1]?.serve('silent', { call: () => new Promise(() => {}) })
    await expect(peers[0]?.call(1, 'silent', {}, 1)).rejects.toThrow('within 1 ms')
    const pending = expect(peers[0]?.call(1, 'silent', {}, 60_000)).rejects.toThrow(PeerError)
    end(1)
    await pending
    await peers[0]?.callAll('silent', {}, 1_000)
  })

  it('open channels that close with the other side', async () => {
    const { peers, end } = link(2)
    const accepted = Promise.withResolvers<Channel>()
    peers[1]?.serve('chat', {
      open(channel, greeting) {
        channel.onMessage((message) => channel.post([greeting, message]))
        accepted.resolve(channel)
      },
    })
    const channel = peers[0]?.open(1, 'chat', 'hello')
    const answer = new Promise((resolve) => channel?.onMessage(resolve))
    channel?.post('you')
    expect(await answer).toEqual(['hello', 'you'])
    const closed = new Promise<void>((resolve) => channel?.onClose(resolve))
    const remote = await accepted.promise
    remote.close()
    await closed
    const second = peers[0]?.open(1, 'chat', 'again')
    const ended = new Promise<void>((resolve) => second?.onClose(resolve))
    end(1)
    await ended
  })

  it('link a replacement to all others', async () => {
    const { peers, replace } = link(2)
    replace(1).serve('echo', { call: (request) => request })
    expect(await peers[0]?.call(1, 'echo', 7, 1_000)).toBe(7)
  })

  it('share regions of memory by name', () => {
    const [first, second] = linkMemory(2)
    const a = first?.region('counts', 64)
    if (a !== undefined) a.int32[3] = 5
    expect(second?.region('counts', 64).int32[3]).toBe(5)
    expect([first?.plane, second?.plane]).toEqual([0, 1])
  })
})
