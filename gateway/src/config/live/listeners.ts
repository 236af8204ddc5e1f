import type { ListeningServer } from '../../net/listener/listener.ts'
import type { Listener, Snapshot } from '../../pipeline/snapshot.ts'

/** Opens a listening address; rejects with the system's error. `find` returns the active listener of an address. */
export type OpenListener = (
  listener: Listener,
  find: (key: string) => Listener | undefined,
) => Promise<ListeningServer>

/** A snapshot that could run now. */
export type PreparedListeners = {
  /** Makes it what runs. Addresses that are gone stop accepting and finish what they have. */
  commit(): void
  /** Closes what was opened for it. */
  abort(): void
}

/** The running snapshot and the sockets that serve it. */
export type LiveListeners = {
  /** The listener of an address as it is now; undefined once a reload took it away. */
  find(key: string): Listener | undefined
  /**
   * Opens the addresses that `next` adds: when one cannot be, nothing changes and the error is thrown. One preparation at a
   * time, each ended by `commit` or `abort`.
   */
  prepare(next: Snapshot): Promise<PreparedListeners>
  /** What it listens on now, as `host:port`. */
  addresses(): string[]
  /** Stops accepting everywhere, for good; resolves when the last exchange is over. Snapshots may still change meanwhile. */
  drain(): Promise<void>
  /** Ends every connection at once. */
  close(): void
}

export function createLiveListeners(open: OpenListener): LiveListeners {
  let snapshot: Snapshot = { listeners: new Map(), stops: new Map() }
  const servers = new Map<string, ListeningServer>()
  const draining = new Set<ListeningServer>()
  /** From then on no address is opened: a change that comes while the last requests finish must not invite new ones. */
  let isEnding = false

  function find(key: string): Listener | undefined {
    return snapshot.listeners.get(key)
  }

  async function openNew(next: Snapshot): Promise<Map<string, ListeningServer>> {
    const opened = new Map<string, ListeningServer>()
    try {
      for (const [key, listener] of next.listeners) {
        if (!servers.has(key) && !isEnding) opened.set(key, await open(listener, find))
      }
    } catch (error) {
      for (const server of opened.values()) server.close()
      throw error
    }
    return opened
  }

  function commit(next: Snapshot, opened: ReadonlyMap<string, ListeningServer>): void {
    const previous = snapshot
    snapshot = next
    for (const [place, stop] of previous.stops) if (!next.stops.has(place)) void stop()
    for (const [key, server] of opened) {
      // It was prepared before the end began.
      if (isEnding) server.close()
      else servers.set(key, server)
    }
    for (const [key, server] of servers) {
      if (next.listeners.has(key)) continue
      servers.delete(key)
      void drainServer(server)
    }
  }

  async function drainServer(server: ListeningServer): Promise<void> {
    draining.add(server)
    await server.drain()
    draining.delete(server)
  }

  return {
    find,
    async prepare(next) {
      const opened = await openNew(next)
      return {
        commit: () => commit(next, opened),
        abort() {
          for (const server of opened.values()) server.close()
        },
      }
    },
    addresses: () => [...servers.keys()],
    async drain() {
      isEnding = true
      const open = [...servers.values()]
      servers.clear()
      const stopped = [...snapshot.stops.values()].map((stop) => stop())
      await Promise.all([...open.map(drainServer), ...stopped])
    },
    close() {
      isEnding = true
      for (const server of [...servers.values(), ...draining]) server.close()
      servers.clear()
    },
  }
}
