import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import { runYielding, type YieldPoint } from '../../../lib/scheduling/yielding.ts'
import { deltaMessage, fullMessage } from '../parts/messages.ts'
import type { ConfigParts, PartList } from '../parts/parts.ts'
import { type ConnectedProxy, createProxyConnections, type ProxyConnections } from './proxy-connections.ts'

/** A compressed message: its bytes are shared by all connections. */
export type Frame = { readonly version: string; readonly bytes: Uint8Array }

/** The configuration of one Gateway with its recent versions, and the connections of its proxies. */
export type Channel = {
  /** Undefined before the first configuration. */
  readonly version: string | undefined
  readonly parts: ConfigParts | undefined
  readonly connections: ProxyConnections
  publish(parts: ConfigParts): void
  /**
   * Message that leads from a version to the current configuration: the changes if the version is one of the
   * recent ones, otherwise the whole. Undefined without configuration.
   */
  frameFrom(version: string | undefined): Promise<Frame> | undefined
  proxies(): readonly ConnectedProxy[]
  /** Whether it has neither a configuration nor connections. */
  isIdle(): boolean
  /** Ends all connections. */
  close(reason: string): void
}

export type ChannelOptions = {
  readonly yieldPoint: YieldPoint
  onProxyChange(): void
}

/** Bounds on recent versions of one Gateway; a version of 10,000 routes is some 300 KB. */
const maxVersions = 64
const maxVersionKeys = 500_000

const compress = promisify(zstdCompress)

export function createChannel({ yieldPoint, onProxyChange }: ChannelOptions): Channel {
  const connections = createProxyConnections(onProxyChange)
  /** In order of publication, the current one last. */
  const recent = new Map<string, PartList>()
  /** Frames that lead to the current version, by their start. */
  const frames = new Map<string | undefined, Promise<Frame>>()
  let current: ConfigParts | undefined

  async function createFrame(to: ConfigParts, from: PartList | undefined): Promise<Frame> {
    const pieces: string[] = []
    const message = from === undefined ? fullMessage(to) : deltaMessage(from, to)
    await runYielding(collecting(message, pieces), yieldPoint)
    return { version: to.version, bytes: await compress(Buffer.from(pieces.join(''))) }
  }

  return {
    get version() {
      return current?.version
    },
    get parts() {
      return current
    },
    connections,
    publish(parts) {
      if (parts.version === current?.version) {
        current = parts
        return
      }
      const { version, keys, hashes } = parts
      current = parts
      frames.clear()
      recent.delete(version)
      recent.set(version, { version, keys, hashes })
      removeOldest(recent)
      connections.wake()
    },
    frameFrom(version) {
      const to = current
      if (to === undefined) return undefined
      const from = version === undefined ? undefined : recent.get(version)
      const start = from?.version
      const known = frames.get(start)
      if (known !== undefined) return known
      const frame = createFrame(to, from)
      frames.set(start, frame)
      return frame
    },
    proxies: connections.list,
    isIdle: () => current === undefined && connections.list().length === 0,
    close(reason) {
      connections.close(reason)
    },
  }
}

function* collecting(message: Iterable<string>, pieces: string[]): Generator<void, void> {
  for (const piece of message) {
    pieces.push(piece)
    yield
  }
}

/** Removes the oldest versions above the bounds; the current one always remains. */
function removeOldest(recent: Map<string, PartList>): void {
  let keys = 0
  for (const { keys: own } of recent.values()) keys += own.length
  for (const [version, { keys: own }] of recent) {
    const isWithin = recent.size <= maxVersions && keys <= maxVersionKeys
    if (isWithin || recent.size === 1) return
    recent.delete(version)
    keys -= own.length
  }
}
