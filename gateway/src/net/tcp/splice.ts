import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'

/** How two connections that were one to their ends came apart. */
export type SpliceOutcome =
  /** Both said that they have no more to say. */
  | { readonly kind: 'complete' }
  /** One of them broke off, with the system's error where there was one. */
  | { readonly kind: 'broken'; readonly by: 'client' | 'upstream'; readonly error: Error | undefined }
  /** Nothing moved in either direction for too long. */
  | { readonly kind: 'idle' }

export type SpliceOptions = {
  /** Longest time without a byte in either direction. */
  readonly idleTimeoutMs: number
  /** Called for each piece that is passed on. */
  onReceived(bytes: number): void
  onSent(bytes: number): void
  /** Called once, when both connections are closed. */
  onEnd(outcome: SpliceOutcome): void
}

/**
 * Passes on what each of two connections says to the other until both are closed. A side that is read slowly slows the
 * other down; a side that has said everything may go on listening; a side that breaks breaks the other, so that nothing cut off looks
 * complete. Both must allow half-open connections, and have nobody else who reads them.
 */
export function splice(client: Duplex, upstream: Duplex, options: SpliceOptions): void {
  let outcome: SpliceOutcome = { kind: 'complete' }
  let open = 2
  const idle = setTimeout(() => {
    breakOff({ kind: 'idle' })
  }, options.idleTimeoutMs)

  forward(client, upstream, options.onReceived)
  forward(upstream, client, options.onSent)
  watch(client, 'client')
  watch(upstream, 'upstream')

  function forward(from: Duplex, to: Duplex, count: (bytes: number) => void): void {
    // Other streams may hold on to what they were given.
    const takes = to instanceof Socket
    from.on('data', (chunk: Buffer) => {
      idle.refresh()
      count(chunk.length)
      if (!to.write(chunk)) from.pause()
      if (takes && to.writableLength === 0) release(chunk)
    })
    to.on('drain', () => {
      idle.refresh()
      from.resume()
    })
    from.on('end', () => to.end())
    from.resume()
  }

  function watch(side: Duplex, by: 'client' | 'upstream'): void {
    side.on('error', (error) => breakOff({ kind: 'broken', by, error }))
    side.on('close', () => {
      if (!(side.readableEnded && side.writableFinished)) breakOff({ kind: 'broken', by, error: undefined })
      open -= 1
      if (open > 0) return
      clearTimeout(idle)
      options.onEnd(outcome)
    })
  }

  function breakOff(reason: SpliceOutcome): void {
    if (outcome.kind !== 'complete') return
    outcome = reason
    reset(client)
    reset(upstream)
  }
}

/** Smaller pieces are not worth it, and may share their memory with others. */
const releasedFromBytes = 4096

/**
 * Gives the memory of a piece back once the system has a copy of it. Left to the garbage collector, some hundred megabytes a second
 * would send it through the whole heap all the time, which costs as much as moving them.
 */
function release({ buffer, length }: Buffer): void {
  if (length < releasedFromBytes || length !== buffer.byteLength) return
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** Ends a connection so that its peer does not take it for a complete one; TLS says that by the lack of its closing message. */
export function reset(socket: Duplex): void {
  if (socket.destroyed) return
  if (socket instanceof Socket && !(socket instanceof TLSSocket) && !isEnding(socket))
    socket.resetAndDestroy()
  else socket.destroy()
}

/**
 * Whether all was said and only the end is on its way. The system refuses to reset a connection at that moment, and Node would then
 * lose track of it; nothing is lost by an ordinary end, because its peer gets all that there was.
 */
function isEnding(socket: Socket): boolean {
  return socket.writableEnded && !socket.writableFinished && socket.writableLength === 0
}
