import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Pool } from 'undici'

/**
 * The floor for MCP: request and response pass unparsed, with the header fields of the protocol. No token
 * check, no rules.
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
  let abort = (): void => {}
  response.on('close', () => {
    if (!response.writableFinished) abort()
  })
  const { accept, 'mcp-session-id': session, 'mcp-protocol-version': version } = request.headers
  upstream.dispatch(
    {
      path: request.url ?? '/',
      method: 'POST',
      headers: {
        accept,
        'content-type': 'application/json',
        ...(session === undefined ? undefined : { 'mcp-session-id': session }),
        ...(version === undefined ? undefined : { 'mcp-protocol-version': version }),
      },
      body,
      bodyTimeout: 600_000,
    },
    {
      onRequestStart(controller) {
        abort = () => controller.abort(new Error('client gone'))
      },
      onResponseStart(controller, statusCode, headers) {
        for (const name of ['content-type', 'content-length', 'mcp-session-id']) {
          const value = headers[name]
          if (value !== undefined) response.setHeader(name, value)
        }
        response.writeHead(statusCode)
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

const server = createServer({ keepAliveTimeout: 60_000 }, relay)
server.listen(Number(process.argv[2]), '127.0.0.1', 4096, () => process.stdout.write('listening\n'))

// A profile is written only at an orderly end.
process.on('SIGTERM', () => process.exit(0))
