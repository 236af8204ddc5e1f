import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { BodySource } from '../http/body.ts'
import { createBodyBudget } from '../http/body-budget.ts'
import type { Headers } from '../http/headers.ts'
import { allowedTrailers } from '../http/trailers.ts'
import type { HttpConnection } from '../listener/connection-handler.ts'
import type { RequestMode } from './server-state.ts'

/** Body of an HTTP/1 request. Sends 100 (Continue) at the start of reading, if expected. */
export function requestBody(
  request: IncomingMessage,
  response: ServerResponse,
  { mode, connection }: { mode: Pick<RequestMode, 'awaitsContinue'>; connection: HttpConnection },
): BodySource {
  const { awaitsContinue } = mode
  let over = false
  return {
    budget: createBodyBudget(connection.admitted, (end) => response.on('close', end)),
    start(sink) {
      if (awaitsContinue && !response.headersSent) response.writeContinue()
      request.on('data', (chunk: Buffer) => {
        if (!over && !sink.write(chunk)) request.pause()
      })
      request.on('end', () => {
        if (over) return
        over = true
        sink.end(request.rawTrailers.length > 0 ? allowedTrailers(request.trailers as Headers) : undefined)
      })
      // An aborted connection closes the response; the request emits nothing without an error listener.
      response.on('close', () => {
        if (over) return
        over = true
        sink.fail(new GatewayError('request_aborted', 'the request ended before its body was complete'))
      })
    },
    resume: () => request.resume(),
    cancel() {
      over = true
      request.resume()
    },
  }
}
