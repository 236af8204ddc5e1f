/** Messages between the data planes of a process. Messages are plain data (structured clone). */
export type Peers = {
  /** Index of this data plane, from 0. */
  readonly self: number
  /** Number of data planes, this one included. */
  readonly count: number
  /**
   * Calls a service of another data plane. Rejects with `PeerError` if the data plane ends, has no such
   * service, or does not respond within `timeoutMs`; and with an error of the service's message.
   */
  call(plane: number, service: string, request: unknown, timeoutMs: number): Promise<unknown>
  /** Calls a service of all other data planes; those that end or lack the service count as done. */
  callAll(service: string, request: unknown, timeoutMs: number): Promise<void>
  /** Opens a channel to a service of another data plane. It closes if the data plane ends. */
  open(plane: number, service: string, greeting: unknown): Channel
  /** Registers a service of this data plane; replaces one of the same name. */
  serve(service: string, handlers: ServiceHandlers): void
}

export type ServiceHandlers = {
  call?(request: unknown, from: number): unknown
  open?(channel: Channel, greeting: unknown, from: number): void
}

/** A duplex channel. Messages arrive in order. After `close` on either side no message arrives. */
export type Channel = {
  post(message: unknown): void
  onMessage(receive: (message: unknown) => void): void
  /** Called once, after `close` by the other side or the end of its data plane. */
  onClose(closed: () => void): void
  close(): void
}

/** A failure of the data plane called, not of its service. */
export class PeerError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'PeerError'
  }
}

/** Peers of a process with a single data plane: there are no others. */
export function createSinglePlane(): Peers {
  const absent = (plane: number) => new PeerError(`data plane ${plane} does not exist`)
  return {
    self: 0,
    count: 1,
    call: (plane) => Promise.reject(absent(plane)),
    callAll: () => Promise.resolve(),
    open(plane) {
      throw absent(plane)
    },
    serve() {},
  }
}
