import { MessageChannel } from 'node:worker_threads'
import { type Memory, maxBytesOf, type Region, regionOf } from '../../src/lib/planes/memory.ts'
import type { Peers } from '../../src/lib/planes/peers.ts'
import { createPeerLinks, type PeerLinks } from '../../src/workers/messages/peer-links.ts'

/** Data planes on one thread: messages between them are cloned and arrive asynchronously. */
export type LinkedPeers = {
  /** The peers of each data plane, by index. */
  readonly peers: Peers[]
  /** Ends a data plane like a crash: its calls and channels end at the others. */
  end(plane: number): void
  /** Ends a data plane and links a new one with the same index, without services. */
  replace(plane: number): Peers
  /** Ends all data planes. */
  close(): void
}

/** Links `count` data planes. */
export function linkPeers(count: number): LinkedPeers {
  const peers: PeerLinks[] = []
  for (let plane = 0; plane < count; plane += 1) add(plane)

  /** Adds a data plane, with links to all others. */
  function add(plane: number): PeerLinks {
    const added = createPeerLinks(plane, count)
    for (const [other, link] of peers.entries()) {
      if (other === plane) continue
      const { port1, port2 } = new MessageChannel()
      added.connect(other, port1)
      link.connect(plane, port2)
    }
    peers[plane] = added
    return added
  }

  return {
    peers,
    end: (plane) => peers[plane]?.close(),
    replace(plane) {
      peers[plane]?.close()
      return add(plane)
    },
    close() {
      for (const link of peers) link.close()
    },
  }
}

/** Memory of `count` data planes with shared regions, bound immediately. */
export function linkMemory(count: number): Memory[] {
  const regions = new Map<string, SharedArrayBuffer>()
  const region = (name: string, bytes: number, maxBytes?: number): Region => {
    const buffer = regions.get(name) ?? new SharedArrayBuffer(bytes, maxBytesOf(bytes, maxBytes))
    regions.set(name, buffer)
    return regionOf(buffer)
  }
  return Array.from({ length: count }, (_, plane) => ({ plane, planes: count, region }))
}
