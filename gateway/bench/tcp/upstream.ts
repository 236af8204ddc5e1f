import { createServer, type Socket } from 'node:net'

/**
 * Upstream for TCP route measurements. A connection starts with the number of requested bytes, as eight
 * bytes. The bytes after it are counted; after the client's end and all requested bytes, the count is sent
 * last.
 */
const block = Buffer.alloc(64 * 1024, 'tollgate')

function serve(socket: Socket): void {
  let head = Buffer.alloc(0)
  let received = 0
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    if (head.length === 8) {
      received += chunk.length
      return
    }
    const begin = Buffer.concat([head, chunk])
    head = begin.subarray(0, 8)
    received += begin.length - head.length
    if (head.length === 8) send(Number(head.readBigUInt64BE()))
  })

  function send(left: number): void {
    for (let unsent = left; unsent > 0; ) {
      const piece = block.subarray(0, Math.min(unsent, block.length))
      unsent -= piece.length
      if (!socket.write(piece)) {
        socket.once('drain', () => send(unsent))
        return
      }
    }
    if (socket.readableEnded) finish()
    else socket.once('end', finish)
  }

  function finish(): void {
    const count = Buffer.alloc(8)
    count.writeBigUInt64BE(BigInt(received))
    socket.end(count)
  }
}

createServer({ allowHalfOpen: true }, serve).listen(Number(process.argv[2]), '127.0.0.1', 4096, () =>
  process.stdout.write('listening\n'),
)

process.on('SIGTERM', () => process.exit(0))
