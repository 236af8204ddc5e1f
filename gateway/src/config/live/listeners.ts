import type { ListeningServer } from '../../net/listener/listener.ts'
import type { Listener, Snapshot } from '../../pipeline/snapshot.ts'

/**
 * Opens a listening address; rejects with the system's error. `find` returns the active listener of an
 * address.
 */
export type OpenListener = (
  listener: Listener,
  find: (key: string) => Listener | undefined,
) => Promise<ListeningServer>

/** A snapshot with all of its addresses open. */
export type PreparedListeners = {
  /** Activates the snapshot. Removed addresses stop accepting and finish their requests. */
  commit(): void
  /** Closes the addresses opened for the snapshot. */
  abort(): void
}

/** The active snapshot and the sockets that serve it. */
export type LiveListeners = {
  /** The active listener of an address; undefined after its removal by a reload. */
  find(key: string): Listener | undefined
  /** Key of the listener for connections to a port by CONNECT requests; undefined without one. */
  keyOfPort(port: number): string | undefined
  /**
   * Opens the addresses that `next` adds. Throws if one of them cannot be opened; then nothing has changed.
   * One preparation at a time, each ended by `commit` or `abort`.
   */
  prepare(next: Snapshot): Promise<PreparedListeners>
  /** Open addresses, as `host:port`. */
  addresses(): string[]
  /** Open connections by address. */
  connections(): Record<string, number>
  /** Ends each HTTP/1 connection with its next response; continues to accept. */
  announceDrain(): void
  /**
   * Stops accepting on all addresses, permanently; resolves after the last exchange. Snapshots may still
   * change.
   */
  drain(): Promise<void>
  /** Closes all connections immediately. */
  close(): void
}

export function createLiveListeners(open: OpenListener): LiveListeners {
  let snapshot: Snapshot = { listeners: new Map(), stops: new Map() }
  /** Whether a snapshot was committed. */
  let isActive = false
  const servers = new Map<string, ListeningServer>()
  const draining = new Set<ListeningServer>()
  /** Opens no address from then on: a configuration change during shutdown must not accept new requests. */
  let isEnding = false

  function find(key: string): Listener | undefined {
    return snapshot.listeners.get(key)
  }

  async function openNew(next: Snapshot): Promise<Map<string, ListeningServer>> {
    const opened = new Map<string, ListeningServer>()
    try {
      for (const [key, listener] of next.listeners) {
        if (!servers.has(key) && !isEnding && listener.isInternal !== true)
          opened.set(key, await open(listener, find))
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
    isActive = true
    for (const [place, stop] of previous.stops) if (!next.stops.has(place)) void stop()
    for (const [key, server] of opened) {
      // Prepared before the shutdown began.
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
    keyOfPort(port) {
      const all = [...snapshot.listeners.values()]
      const found =
        all.find((listener) => listener.port === port) ??
        all.find((listener) => listener.isInternal === true && listener.port === 0)
      // A tunnel within a tunnel would have no end.
      return found?.kind === 'connect' ? undefined : found?.key
    },
    async prepare(next) {
      // Other data planes may serve its addresses already: a request must not fail before the commit.
      if (!isActive) snapshot = next
      const opened = await openNew(next)
      return {
        commit: () => commit(next, opened),
        abort() {
          for (const server of opened.values()) server.close()
        },
      }
    },
    addresses: () => [...servers.keys()],
    connections: () => Object.fromEntries([...servers].map(([key, server]) => [key, server.connections()])),
    announceDrain() {
      for (const server of servers.values()) server.announceDrain()
    },
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
