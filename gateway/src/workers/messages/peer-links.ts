import type { MessagePort } from 'node:worker_threads'
import { type Channel, PeerError, type Peers, type ServiceHandlers } from '../../lib/planes/peers.ts'
import { messageOf } from '../../lib/thrown.ts'

/** Peers with links that are added as data planes start. */
export type PeerLinks = Peers & {
  /** Connects to a data plane; replaces the link to an earlier one of the same index. */
  connect(plane: number, port: MessagePort): void
  close(): void
}

type Message =
  | { kind: 'call'; id: number; service: string; request: unknown }
  | { kind: 'value'; id: number; value: unknown }
  /** `absent`: the data plane has no such service. */
  | { kind: 'error'; id: number; message: string; absent: boolean }
  | { kind: 'open'; channel: number; service: string; greeting: unknown }
  | { kind: 'message'; channel: number; fromOpener: boolean; value: unknown }
  | { kind: 'close'; channel: number; fromOpener: boolean }

/** Creates the links of a data plane with `count - 1` others. */
export function createPeerLinks(self: number, count: number): PeerLinks {
  const links = new Map<number, Link>()
  const services = new Map<string, ServiceHandlers>()

  function linkTo(plane: number): Link {
    const link = links.get(plane)
    if (link === undefined) throw new PeerError(`data plane ${plane} is not connected`)
    return link
  }

  return {
    self,
    count,
    async call(plane, service, request, timeoutMs) {
      return linkTo(plane).call(service, request, timeoutMs)
    },
    async callAll(service, request, timeoutMs) {
      const calls = [...links.values()].map((link) => link.call(service, request, timeoutMs))
      const outcomes = await Promise.allSettled(calls)
      const failed = outcomes.find(
        (outcome) => outcome.status === 'rejected' && !(outcome.reason instanceof PeerGone),
      )
      if (failed?.status === 'rejected') throw failed.reason
    },
    open: (plane, service, greeting) => linkTo(plane).open(service, greeting),
    serve(service, handlers) {
      services.set(service, handlers)
    },
    connect(plane, port) {
      links.get(plane)?.end()
      const link = createLink(port, {
        plane,
        find: (service) => services.get(service),
        ended() {
          if (links.get(plane) === link) links.delete(plane)
        },
      })
      links.set(plane, link)
    },
    close() {
      for (const link of [...links.values()]) link.end()
    },
  }
}

/** The data plane has ended, or lacks the service. */
class PeerGone extends PeerError {}

type Link = {
  call(service: string, request: unknown, timeoutMs: number): Promise<unknown>
  open(service: string, greeting: unknown): Channel
  end(): void
}

type LinkOptions = {
  plane: number
  find(service: string): ServiceHandlers | undefined
  ended(): void
}

type Waiting = { resolve(value: unknown): void; reject(error: Error): void }

function createLink(port: MessagePort, { plane, find, ended }: LinkOptions): Link {
  const waiting = new Map<number, Waiting>()
  /** Open channels by their opener and number. */
  const channels = { own: new Map<number, ChannelEnd>(), theirs: new Map<number, ChannelEnd>() }
  let lastId = 0
  let isOpen = true

  const post = (message: Message) => port.postMessage(message)

  function createEnd(channel: number, fromOpener: boolean): ChannelEnd {
    const sameSide = fromOpener ? channels.own : channels.theirs
    const end = createChannelEnd({
      post: (value) => post({ kind: 'message', channel, fromOpener, value }),
      close() {
        if (sameSide.delete(channel) && isOpen) post({ kind: 'close', channel, fromOpener })
      },
    })
    sameSide.set(channel, end)
    return end
  }

  async function respond({ id, service, request }: Extract<Message, { kind: 'call' }>): Promise<void> {
    const call = find(service)?.call
    if (call === undefined) {
      post({ kind: 'error', id, message: `data plane has no service ${service}`, absent: true })
      return
    }
    try {
      post({ kind: 'value', id, value: await call(request, plane) })
    } catch (error) {
      post({ kind: 'error', id, message: messageOf(error), absent: false })
    }
  }

  function accept({ channel, service, greeting }: Extract<Message, { kind: 'open' }>): void {
    const end = createEnd(channel, false)
    const open = find(service)?.open
    if (open === undefined) end.channel.close()
    else open(end.channel, greeting, plane)
  }

  /** `fromOpener`: sent by the side that opened the channel, so that this side has it as `theirs`. */
  function endOf(channel: number, fromOpener: boolean): ChannelEnd | undefined {
    return (fromOpener ? channels.theirs : channels.own).get(channel)
  }

  function receive(message: Message): void {
    switch (message.kind) {
      case 'call':
        void respond(message)
        return
      case 'value':
        waiting.get(message.id)?.resolve(message.value)
        return
      case 'error':
        waiting
          .get(message.id)
          ?.reject(message.absent ? new PeerGone(message.message) : new Error(message.message))
        return
      case 'open':
        accept(message)
        return
      case 'message':
        endOf(message.channel, message.fromOpener)?.receive(message.value)
        return
      case 'close': {
        const end = endOf(message.channel, message.fromOpener)
        ;(message.fromOpener ? channels.theirs : channels.own).delete(message.channel)
        end?.closed()
      }
    }
  }

  function end(): void {
    if (!isOpen) return
    isOpen = false
    port.close()
    ended()
    for (const call of [...waiting.values()]) call.reject(new PeerGone(`data plane ${plane} ended`))
    const open = [...channels.own.values(), ...channels.theirs.values()]
    channels.own.clear()
    channels.theirs.clear()
    for (const channel of open) channel.closed()
  }

  port.on('message', receive)
  port.on('close', end)
  // The link alone does not keep the thread running.
  port.unref()

  return {
    call(service, request, timeoutMs) {
      lastId += 1
      const id = lastId
      return new Promise<unknown>((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new PeerError(`data plane ${plane} did not respond to ${service}`)),
          timeoutMs,
        )
        waiting.set(id, {
          resolve(value) {
            clearTimeout(timer)
            resolve(value)
          },
          reject(error) {
            clearTimeout(timer)
            reject(error)
          },
        })
        post({ kind: 'call', id, service, request })
      }).finally(() => waiting.delete(id))
    },
    open(service, greeting) {
      lastId += 1
      const { channel } = createEnd(lastId, true)
      post({ kind: 'open', channel: lastId, service, greeting })
      return channel
    },
    end,
  }
}

/** Messages that a channel retains before `onMessage`; it closes beyond them. */
const maxEarly = 1_000

type ChannelEnd = {
  readonly channel: Channel
  receive(message: unknown): void
  /** The other side has closed. */
  closed(): void
}

function createChannelEnd({ post, close }: { post(value: unknown): void; close(): void }): ChannelEnd {
  let state: 'open' | 'closed' = 'open'
  let receive: ((message: unknown) => void) | undefined
  let onClose: (() => void) | undefined
  /** Messages before `onMessage`. */
  let early: unknown[] = []

  function closed(): void {
    if (state === 'closed') return
    state = 'closed'
    onClose?.()
  }

  return {
    channel: {
      post(message) {
        if (state === 'open') post(message)
      },
      onMessage(handler) {
        receive = handler
        const messages = early
        early = []
        for (const message of messages) handler(message)
      },
      onClose(closed) {
        onClose = closed
        if (state === 'closed') closed()
      },
      close() {
        if (state === 'closed') return
        state = 'closed'
        onClose = undefined
        close()
      },
    },
    receive(message) {
      if (state === 'closed') return
      if (receive === undefined) early.push(message)
      else receive(message)
      if (early.length <= maxEarly) return
      early = []
      close()
      closed()
    },
    closed,
  }
}
