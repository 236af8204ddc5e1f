import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Pool } from 'undici'

/**
 * The floor that Tollgate is measured against: the least a gateway on this runtime can do. It buffers the request, parses the JSON of
 * request and answer (to be able to read model and usage), and passes bytes on. A streamed answer is not parsed.
 */

const upstream = new Pool(`http://127.0.0.1:${process.argv[3]}`, { allowH2: false, connections: 1024 })

function relay(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const [only] = chunks
    forward(request, only && chunks.length === 1 ? only : Buffer.concat(chunks), response)
  })
}

function forward(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  JSON.parse(body.toString())
  const parts: Buffer[] = []
  let status = 502
  let streamed = false
  let abort = (): void => {}
  response.on('close', () => {
    if (!response.writableFinished) abort()
  })
  upstream.dispatch(
    {
      path: request.url ?? '/',
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: request.headers.authorization },
      body,
      bodyTimeout: 600_000,
    },
    {
      onRequestStart(controller) {
        abort = () => controller.abort(new Error('client gone'))
      },
      onResponseStart(controller, statusCode, headers) {
        status = statusCode
        streamed = String(headers['content-type']).startsWith('text/event-stream')
        if (!streamed) return
        response.writeHead(statusCode, { 'content-type': 'text/event-stream; charset=utf-8' })
        response.on('drain', () => controller.resume())
      },
      onResponseData(controller, chunk) {
        if (!streamed) parts.push(chunk)
        else if (!response.write(chunk)) controller.pause()
      },
      onResponseEnd() {
        if (streamed) {
          response.end()
          return
        }
        const [only] = parts
        const answer = only && parts.length === 1 ? only : Buffer.concat(parts)
        JSON.parse(answer.toString())
        response.writeHead(status, {
          'content-type': 'application/json',
          'content-length': answer.byteLength,
        })
        response.end(answer)
      },
      onResponseError() {
        response.destroy()
      },
    },
  )
}

const server = createServer({ keepAliveTimeout: 60_000 }, relay)
server.listen(Number(process.argv[2]), '127.0.0.1', 4096, () => process.stdout.write('listening\n'))

// A profile is written only at an orderly end.
process.on('SIGTERM', () => process.exit(0))
