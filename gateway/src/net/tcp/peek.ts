import type { Socket } from 'node:net'

export type Peek<Verdict> = {
  readonly limitMs: number
  /** Holds the connection for as long as it is looked at. */
  readonly silent: Set<Socket>
  /** Undefined asks for more bytes, so it must come to a verdict at some length. */
  read(bytes: Buffer): Verdict | undefined
  /** The bytes are in the socket again, to be read by who comes next. */
  done(verdict: Verdict): void
  /** The time is over without a verdict. */
  late(): void
}

/**
 * Looks at the first bytes of a connection and puts them back. A connection that ends without a verdict is closed. It
 * listens for `readable` instead of taking `data`, because that leaves the flow of the socket as it was.
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
