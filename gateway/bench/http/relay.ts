import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { Pool } from 'undici'

/**
 * The floor for plain HTTP routes: one route, no log, no counters. Messages pass unparsed; header fields pass
 * except those of the connection.
 */

const upstream = new Pool(`http://127.0.0.1:${process.argv[3]}`, { allowH2: false, connections: 1024 })

function relay(request: IncomingMessage, response: ServerResponse): void {
  if (request.method === 'GET') {
    forward(request, undefined, response)
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const [only] = chunks
    forward(request, only && chunks.length === 1 ? only : Buffer.concat(chunks), response)
  })
}

function forward(request: IncomingMessage, body: Buffer | undefined, response: ServerResponse): void {
  let abort = (): void => {}
  response.on('close', () => {
    if (!response.writableFinished) abort()
  })
  upstream.dispatch(
    {
      path: request.url ?? '/',
      method: request.method === 'POST' ? 'POST' : 'GET',
      headers: withoutConnection(request.headers),
      body: body ?? null,
      bodyTimeout: 600_000,
    },
    {
      onRequestStart(controller) {
        abort = () => controller.abort(new Error('client gone'))
      },
      onResponseStart(controller, statusCode, headers) {
        response.writeHead(statusCode, withoutConnection(headers))
        response.on('drain', () => controller.resume())
      },
      onResponseData(controller, chunk) {
        if (!response.write(chunk)) controller.pause()
      },
      onResponseEnd() {
        response.end()
      },
      onResponseError() {
        response.destroy()
      },
    },
  )
}

/** Header fields of this connection (RFC 9110 section 7.6.1), which are not forwarded. */
const ofConnection = new Set(['host', 'connection', 'keep-alive', 'transfer-encoding'])

function withoutConnection(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept: IncomingHttpHeaders = {}
  for (const name in headers) if (!ofConnection.has(name)) kept[name] = headers[name]
  return kept
}

const server = createServer({ keepAliveTimeout: 60_000 }, relay)
server.listen(Number(process.argv[2]), '127.0.0.1', 4096, () => process.stdout.write('listening\n'))

// A profile is written only at an orderly end.
process.on('SIGTERM', () => process.exit(0))
