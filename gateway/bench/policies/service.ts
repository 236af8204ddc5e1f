import { createServer, type ServerHttp2Stream } from 'node:http2'

/** A gRPC service that costs as little as possible: permits every request, and changes none. */

const frame = (...bytes: number[]) => Buffer.from([0, 0, 0, 0, bytes.length, ...bytes])

/** CheckResponse with status OK. */
const permitted = frame(0x0a, 0)
/** ProcessingResponse to request headers, then to response headers. */
const unchanged = [frame(0x0a, 0), frame(0x12, 0)]

const head = { ':status': 200, 'content-type': 'application/grpc' }

function check(stream: ServerHttp2Stream): void {
  stream.on('end', () => stream.end(permitted)).resume()
}

/** The messages of a processor are small, so that each is one part of data. */
function exchange(stream: ServerHttp2Stream): void {
  let received = 0
  stream.on('data', () => {
    const response = unchanged[received++]
    if (response !== undefined) stream.write(response)
  })
  stream.on('end', () => stream.end())
}

const server = createServer()
server.on('stream', (stream: ServerHttp2Stream, headers) => {
  stream.on('error', () => {})
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.respond(head, { waitForTrailers: true })
  if (headers[':path']?.endsWith('/Check')) check(stream)
  else exchange(stream)
})
server.listen(Number(process.argv[2]), '127.0.0.1', () => process.stdout.write('listening\n'))
