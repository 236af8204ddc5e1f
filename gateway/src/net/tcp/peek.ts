import type { Socket } from 'node:net'

export type Peek<Verdict> = {
  readonly limitMs: number
  /** Contains the connection during inspection. */
  readonly silent: Set<Socket>
  /** Returns undefined to request more bytes; must return a verdict at some length. */
  read(bytes: Buffer): Verdict | undefined
  /** Called with the bytes back in the socket. */
  done(verdict: Verdict): void
  /** Called at the time limit without a verdict. */
  late(): void
}

/**
 * Inspects the first bytes of a connection and restores them. A connection that ends without a verdict is
 * closed. It reads on `readable` instead of `data`, which would change the flow of the socket.
 */
export function peek<Verdict>(socket: Socket, { limitMs, silent, read, done, late }: Peek<Verdict>): void {
  let bytes: Buffer | undefined
  const timer = setTimeout(() => {
    leave()
    late()
  }, limitMs)

  function leave() {
    clearTimeout(timer)
    silent.delete(socket)
    socket.off('readable', onReadable)
    socket.off('end', onEnd)
    socket.off('close', leave)
  }

  function onEnd() {
    leave()
    socket.destroy()
  }

  function onReadable() {
    const chunk: unknown = socket.read()
    if (!Buffer.isBuffer(chunk)) return
    bytes = bytes === undefined ? chunk : Buffer.concat([bytes, chunk])
    const verdict = read(bytes)
    if (verdict === undefined) return
    leave()
    socket.unshift(bytes)
    done(verdict)
  }

  silent.add(socket)
  socket.on('readable', onReadable)
  socket.on('end', onEnd)
  socket.on('close', leave)
}
