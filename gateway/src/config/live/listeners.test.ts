import { describe, expect, it } from 'vitest'
import type { ListeningServer } from '../../net/listener/listener.ts'
import type { Listener, Snapshot } from '../../pipeline/snapshot.ts'
import { createLiveListeners, type LiveListeners } from './listeners.ts'

function snapshotOf(...ports: number[]): Snapshot {
  const listeners = ports.map(
    (port): Listener => ({
      key: `h:${port}`,
      host: 'h',
      port,
      kind: 'http' as const,
      tls: undefined,
      match: () => undefined,
    }),
  )
  return { listeners: new Map(listeners.map((listener) => [listener.key, listener])), stops: new Map() }
}

function fakeServers(refused: readonly number[] = []) {
  const open = new Set<number>()
  const drained: number[] = []
  return {
    open,
    drained,
    async openListener({ port }: Listener): Promise<ListeningServer> {
      if (refused.includes(port)) throw new Error(`port ${port} is in use`)
      open.add(port)
      return {
        port,
        connections: () => 0,
        announceDrain() {},
        drain: async () => {
          open.delete(port)
          drained.push(port)
        },
        close: () => open.delete(port),
      }
    },
  }
}

async function apply(live: LiveListeners, snapshot: Snapshot): Promise<void> {
  const prepared = await live.prepare(snapshot)
  prepared.commit()
}

describe('createLiveListeners', () => {
  it('opens added addresses, retains unchanged ones and drains removed ones', async () => {
    const servers = fakeServers()
    const live = createLiveListeners(servers.openListener)
    await apply(live, snapshotOf(1, 2))
    await apply(live, snapshotOf(2, 3))
    expect([...servers.open].sort()).toEqual([2, 3])
    expect(servers.drained).toEqual([1])
    expect(live.find('h:1')).toBeUndefined()
  })

  it('retains the previous snapshot if an address cannot be opened', async () => {
    const servers = fakeServers([9])
    const live = createLiveListeners(servers.openListener)
    const first = snapshotOf(1)
    await apply(live, first)
    await expect(live.prepare(snapshotOf(2, 9))).rejects.toThrow('port 9 is in use')
    expect([...servers.open]).toEqual([1])
    expect(live.find('h:1')).toBe(first.listeners.get('h:1'))
  })

  it('closes the addresses of an aborted snapshot', async () => {
    const servers = fakeServers()
    const live = createLiveListeners(servers.openListener)
    await apply(live, snapshotOf(1))
    const prepared = await live.prepare(snapshotOf(1, 2))
    expect([...servers.open].sort()).toEqual([1, 2])
    prepared.abort()
    expect([...servers.open]).toEqual([1])
    expect(live.find('h:2')).toBeUndefined()
  })

  it('serves the first snapshot as soon as its addresses are open', async () => {
    const found: (Listener | undefined)[] = []
    const servers = fakeServers()
    const live = createLiveListeners((listener, find) => {
      found.push(find(listener.key))
      return servers.openListener(listener)
    })
    const first = snapshotOf(1)
    await apply(live, first)
    await apply(live, snapshotOf(1, 2))
    expect(found).toEqual([first.listeners.get('h:1'), undefined])
  })

  it('closes the resources of a scope after its removal, and only then', async () => {
    const live = createLiveListeners(fakeServers().openListener)
    const ended: string[] = []
    const holding = (...places: string[]): Snapshot => ({
      ...snapshotOf(1),
      stops: new Map(places.map((place) => [place, async () => void ended.push(place)])),
    })
    await apply(live, holding('mcp', 'route tools'))
    await apply(live, holding('mcp'))
    expect(ended).toEqual(['route tools'])
    await live.drain()
    expect(ended).toEqual(['route tools', 'mcp'])
  })

  it('serves the new snapshot on an unchanged address', async () => {
    const servers = fakeServers()
    const live = createLiveListeners(servers.openListener)
    await apply(live, snapshotOf(1))
    const next = snapshotOf(1)
    await apply(live, next)
    expect(live.find('h:1')).toBe(next.listeners.get('h:1'))
  })

  it('opens no address while draining, after any change', async () => {
    const servers = fakeServers()
    const live = createLiveListeners(servers.openListener)
    await apply(live, snapshotOf(1))
    const early = await live.prepare(snapshotOf(1, 2))
    await live.drain()
    early.commit()
    expect([...servers.open]).toEqual([])
    const next = snapshotOf(1, 3)
    await apply(live, next)
    expect([...servers.open]).toEqual([])
    expect(live.find('h:1')).toBe(next.listeners.get('h:1'))
  })
})
