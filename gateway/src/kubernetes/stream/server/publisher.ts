import type { Config } from '../../../config/schema.ts'
import { runYielding, type YieldPoint } from '../../../lib/scheduling/yielding.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import { createDivider } from '../parts/parts.ts'
import { type Channel, createChannel } from './channel.ts'
import type { ConnectedProxy } from './proxy-connections.ts'

/** Configurations of Gateways for their proxies, and the state of these proxies. */
export type ConfigPublisher = {
  /**
   * Sends a configuration to the proxies of a Gateway. Returns its version, which proxies acknowledge; equal
   * configurations have equal versions. Nodes must not be modified afterwards.
   */
  publish(gateway: ObjectKey, config: Config): Promise<string>
  /** Ends the streams of a deleted Gateway. */
  remove(gateway: ObjectKey): void
  /** Proxies of a Gateway that are connected to this process, by name. */
  proxies(gateway: ObjectKey): readonly ConnectedProxy[]
}

export type PublisherOptions = {
  readonly yieldPoint: YieldPoint
  /** Called after a proxy of a Gateway connects, acknowledges, refuses or disconnects. */
  onProxyChange(gateway: ObjectKey): void
}

/** A publisher with the channels that the stream server reads. */
export type ChannelPublisher = ConfigPublisher & {
  /** The channel of a Gateway, without configuration before the first `publish`. */
  channelOf(gateway: ObjectKey): Channel
  /** Forgets the channel of a Gateway that has neither a configuration nor proxies. */
  release(gateway: ObjectKey): void
  /** Closes streams without acknowledgement since a time, in milliseconds since the Unix epoch. */
  closeSilent(since: number): void
}

export function createPublisher({ yieldPoint, onProxyChange }: PublisherOptions): ChannelPublisher {
  const divide = createDivider()
  const channels = new Map<ObjectKey, Channel>()
  /** Work is sequential: two slices of one configuration would compete for the event loop. */
  let last: Promise<unknown> = Promise.resolve()

  function channelOf(gateway: ObjectKey): Channel {
    const known = channels.get(gateway)
    if (known !== undefined) return known
    const channel = createChannel({ yieldPoint, onProxyChange: () => onProxyChange(gateway) })
    channels.set(gateway, channel)
    return channel
  }

  return {
    channelOf,
    publish(gateway, config) {
      const done = last.then(async () => {
        const parts = await runYielding(divide(config, channels.get(gateway)?.parts), yieldPoint)
        channelOf(gateway).publish(parts)
        return parts.version
      })
      last = done.catch(() => undefined)
      return done
    },
    remove(gateway) {
      // After publications in progress, which would create the channel again.
      last = last.then(() => {
        channels.get(gateway)?.close('the Gateway is deleted')
        channels.delete(gateway)
      })
    },
    release(gateway) {
      if (channels.get(gateway)?.isIdle() === true) channels.delete(gateway)
    },
    closeSilent(since) {
      for (const { connections } of channels.values()) connections.closeSilent(since)
    },
    proxies: (gateway) => channels.get(gateway)?.proxies() ?? [],
  }
}
