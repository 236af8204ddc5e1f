import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { type Memory, maxBytesOf, type Region, regionOf } from '../../src/lib/planes/memory.ts'
import { type Channel, PeerError, type Peers, type ServiceHandlers } from '../../src/lib/planes/peers.ts'

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

type Frame =
  | { readonly kind: 'call'; readonly id: number; readonly service: string; readonly content: unknown }
  | { readonly kind: 'result'; readonly id: number; readonly content: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly message: string }
  | { readonly kind: 'absent'; readonly id: number }
  | { readonly kind: 'open'; readonly id: number; readonly service: string; readonly content: unknown }
  | { readonly kind: 'message'; readonly id: number; readonly mine: boolean; readonly content: unknown }
  | { readonly kind: 'close'; readonly id: number; readonly mine: boolean }

type Link = {
  call(service: string, request: unknown, timeoutMs: number): Promise<unknown>
  open(service: string, greeting: unknown): Channel
  end(): void
}

type Services = Map<string, ServiceHandlers>

/** Failure of a call because the data plane ended or has no such service. */
class AbsentError extends PeerError {}

/** Links `count` data planes. */
export function linkPeers(count: number): LinkedPeers {
  const planes = Array.from({ length: count }, () => createPlane())
  for (let plane = 0; plane < count; plane += 1) {
    for (let other = 0; other < plane; other += 1) connect(plane, other)
  }
  const peers = planes.map((plane, self) => peersOf(self, plane))

  function connect(a: number, b: number): void {
    const { port1, port2 } = new MessageChannel()
    const [first, second] = [planes[a], planes[b]]
    first?.links.set(b, createLink(port1, b, first.services))
    second?.links.set(a, createLink(port2, a, second.services))
  }

  function peersOf(self: number, { links, services }: Plane): Peers {
    const linkTo = (plane: number) => {
      const link = links.get(plane)
      if (link === undefined) throw new AbsentError(`data plane ${plane} does not exist`)
      return link
    }
    return {
      self,
      count,
      call: async (plane, service, request, timeoutMs) => linkTo(plane).call(service, request, timeoutMs),
      async callAll(service, request, timeoutMs) {
        const calls = [...links.values()].map((link) => link.call(service, request, timeoutMs))
        const results = await Promise.allSettled(calls)
        const failed = results.find(
          (result) => result.status === 'rejected' && !(result.reason instanceof AbsentError),
        )
        if (failed?.status === 'rejected') throw failed.reason
      },
      open: (plane, service, greeting) => linkTo(plane).open(service, greeting),
      serve: (service, handlers) => void services.set(service, handlers),
    }
  }

  function end(plane: number): void {
    for (const link of planes[plane]?.links.values() ?? []) link.end()
  }

  return {
    peers,
    end,
    replace(plane) {
      end(plane)
      const replacement = createPlane()
      planes[plane] = replacement
      for (let other = 0; other < count; other += 1) if (other !== plane) connect(plane, other)
      const linked = peersOf(plane, replacement)
      peers[plane] = linked
      return linked
    },
    close() {
      for (let plane = 0; plane < count; plane += 1) end(plane)
    },
  }
}

type Plane = { readonly links: Map<number, Link>; readonly services: Services }

function createPlane(): Plane {
  return { links: new Map(), services: new Map() }
}

function createLink(port: MessagePort, other: number, services: Services): Link {
  const calls = new Map<number, PromiseWithResolvers<unknown>>()
  /** Open channels by side of their opener and id. */
  const channels = new Map<string, ChannelEnd>()
  let lastId = 0
  let ended = false
  port.on('message', (frame: Frame) => receive(frame))
  port.on('close', finish)
  port.unref()

  const post = (frame: Frame) => port.postMessage(frame)
  const keyOf = (mine: boolean, id: number) => `${mine} ${id}`

  function receive(frame: Frame): void {
    switch (frame.kind) {
      case 'call':
        void respond(frame)
        return
      case 'open':
        accept(frame)
        return
      case 'message':
        channels.get(keyOf(!frame.mine, frame.id))?.receive(frame.content)
        return
      case 'close':
        channels.get(keyOf(!frame.mine, frame.id))?.closed()
        return
      default:
        settle(frame)
    }
  }

  async function respond({ id, service, content }: Extract<Frame, { kind: 'call' }>): Promise<void> {
    const call = services.get(service)?.call
    if (call === undefined) {
      post({ kind: 'absent', id })
      return
    }
    try {
      post({ kind: 'result', id, content: await call(content, other) })
    } catch (error) {
      post({ kind: 'error', id, message: error instanceof Error ? error.message : String(error) })
    }
  }

  function settle(frame: Extract<Frame, { kind: 'result' | 'error' | 'absent' }>): void {
    const call = calls.get(frame.id)
    calls.delete(frame.id)
    if (frame.kind === 'result') call?.resolve(frame.content)
    else if (frame.kind === 'error') call?.reject(new Error(frame.message))
    else call?.reject(new AbsentError(`data plane ${other} has no such service`))
  }

  function accept({ id, service, content }: Extract<Frame, { kind: 'open' }>): void {
    const open = services.get(service)?.open
    if (open === undefined) post({ kind: 'close', id, mine: false })
    else open(createEnd(false, id), content, other)
  }

  function createEnd(mine: boolean, id: number): Channel {
    const end = createChannelEnd({
      post: (content) => post({ kind: 'message', id, mine, content }),
      close: () => post({ kind: 'close', id, mine }),
      onOver: () => channels.delete(keyOf(mine, id)),
    })
    channels.set(keyOf(mine, id), end)
    return end.channel
  }

  function finish(): void {
    if (ended) return
    ended = true
    for (const end of [...channels.values()]) end.closed()
    for (const call of calls.values()) call.reject(new AbsentError(`data plane ${other} has ended`))
    calls.clear()
  }

  return {
    async call(service, content, timeoutMs) {
      if (ended) throw new AbsentError(`data plane ${other} has ended`)
      lastId += 1
      const id = lastId
      const call = Promise.withResolvers<unknown>()
      calls.set(id, call)
      post({ kind: 'call', id, service, content })
      const timer = setTimeout(() => {
        calls.delete(id)
        call.reject(new PeerError(`data plane ${other} did not respond within ${timeoutMs} ms`))
      }, timeoutMs)
      return call.promise.finally(() => clearTimeout(timer))
    },
    open(service, content) {
      lastId += 1
      const id = lastId
      const channel = createEnd(true, id)
      if (ended) queueMicrotask(() => channels.get(keyOf(true, id))?.closed())
      else post({ kind: 'open', id, service, content })
      return channel
    },
    end() {
      port.close()
      finish()
    },
  }
}

type ChannelEnd = { readonly channel: Channel; receive(message: unknown): void; closed(): void }

function createChannelEnd(wire: { post(message: unknown): void; close(): void; onOver(): void }): ChannelEnd {
  let over = false
  let onMessage: ((message: unknown) => void) | undefined
  let onClose: (() => void) | undefined
  return {
    channel: {
      post(message) {
        if (!over) wire.post(message)
      },
      onMessage(receive) {
        onMessage = receive
      },
      onClose(closed) {
        onClose = closed
      },
      close() {
        if (over) return
        over = true
        wire.onOver()
        wire.close()
      },
    },
    receive(message) {
      if (!over) onMessage?.(message)
    },
    closed() {
      if (over) return
      over = true
      wire.onOver()
      onClose?.()
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
