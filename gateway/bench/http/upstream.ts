import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { httpAnswer } from './workloads.ts'

/** An HTTP server of minimal cost: reads the request and returns a constant response. */
const body = Buffer.from(httpAnswer)
const headers = {
  'content-type': 'application/json',
  'content-length': body.byteLength,
  'cache-control': 'private, max-age=60',
  etag: '"5f2c-1a2b3c"',
  vary: 'accept-encoding',
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  request.on('end', () => {
    response.writeHead(200, headers).end(body)
  })
  request.resume()
}

const server = createServer({ keepAliveTimeout: 60_000 }, answer)
server.listen(Number(process.argv[2]), '127.0.0.1', 4096, () => process.stdout.write('listening\n'))
