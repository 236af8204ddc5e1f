import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'

/** Result of a connection between client and upstream. */
export type SpliceOutcome =
  /** Both sides ended in order. */
  | { readonly kind: 'complete' }
  /** One side failed, with the error of the system if there was one. */
  | { readonly kind: 'broken'; readonly by: 'client' | 'upstream'; readonly error: Error | undefined }
  /** No data in either direction within the limit. */
  | { readonly kind: 'idle' }

export type SpliceOptions = {
  /** Longest time without a byte in either direction. */
  readonly idleTimeoutMs: number
  /** Called per chunk after forwarding. */
  onReceived(bytes: number): void
  onSent(bytes: number): void
  /** Called once, when both connections are closed. */
  onEnd(outcome: SpliceOutcome): void
}

/**
 * Forwards data between two connections until both are closed. Backpressure applies in both directions,
 * half-open connections remain open, and a failed side aborts the other, so that truncated data does not
 * appear complete. Both must permit half-open connections and have no other reader.
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
    // Other streams may retain chunks after writing.
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
    // A side that ended without data before this call emits no further event.
    if (from.readableEnded) to.end()
    else from.on('end', () => to.end())
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

/** Smaller chunks are not worth releasing and may share their memory. */
const releasedFromBytes = 4096

/**
 * Releases the memory of a chunk after the system has copied it. With garbage collection alone, a few hundred
 * megabytes per second would trigger constant major collections, which cost as much as the forwarding.
 */
function release({ buffer, length }: Buffer): void {
  if (length < releasedFromBytes || length !== buffer.byteLength) return
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/**
 * Aborts a connection so that its peer detects truncation: by reset in TCP, by the missing close_notify in
 * TLS.
 */
export function reset(socket: Duplex): void {
  if (socket.destroyed) return
  if (socket instanceof Socket && !(socket instanceof TLSSocket) && !isEnding(socket))
    socket.resetAndDestroy()
  else socket.destroy()
}

/**
 * Whether all data is sent and only the FIN is pending. The system rejects a reset in this state, and Node
 * would then lose the connection; an ordinary end loses nothing, because the peer receives all data.
 */
function isEnding(socket: Socket): boolean {
  return socket.writableEnded && !socket.writableFinished && socket.writableLength === 0
}
