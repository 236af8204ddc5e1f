import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Pool } from 'undici'

/**
 * The floor for LLM traffic: the minimum a gateway on this runtime can do. It buffers the request, parses the
 * JSON of request and response (for model and usage), and forwards the bytes. A streamed response is not
 * parsed.
 *
 * Given the port of a guard webhook, it also calls the webhook with the content of the request and of a
 * response that is not streamed: the cost of the calls without any decision.
 */

const upstream = new Pool(`http://127.0.0.1:${process.argv[3]}`, { allowH2: false, connections: 1024 })
const webhook = process.argv[4]
  ? new Pool(`http://127.0.0.1:${process.argv[4]}`, { allowH2: false, connections: 100 })
  : undefined

function relay(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const [only] = chunks
    const body = only && chunks.length === 1 ? only : Buffer.concat(chunks)
    const { messages } = JSON.parse(body.toString())
    ask('/request', { messages }, () => forward(request, body, response))
  })
}

/** Calls the webhook, if there is one, and goes on when it has answered. */
function ask(path: string, body: object, then: () => void): void {
  if (webhook === undefined) {
    then()
    return
  }
  let answer = ''
  webhook.dispatch(
    {
      path,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify({ body })),
    },
    {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData(_, chunk) {
        answer += chunk.toString()
      },
      onResponseEnd() {
        JSON.parse(answer)
        then()
      },
      onResponseError(_, error) {
        throw error
      },
    },
  )
}

function forward(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
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
        const { choices } = JSON.parse(answer.toString())
        ask('/response', { choices }, () => {
          response.writeHead(status, {
            'content-type': 'application/json',
            'content-length': answer.byteLength,
          })
          response.end(answer)
        })
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
