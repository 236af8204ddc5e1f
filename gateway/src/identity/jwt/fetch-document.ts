import { createCancellation } from '../../lib/cancellation.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type Body, readAll } from '../../net/http/body.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { Send } from '../../net/http-client/send.ts'

export type DocumentRequest = {
  url: string
  method?: string
  headers?: Headers
  body?: Body | string
  /** Body limit; beyond it the request fails with `upstream_too_large`. */
  maxBytes: number
  /** Total timeout: connection, head and body. */
  timeoutMs: number
}

export type FetchedDocument = { status: number; headers: Headers; text: string }

/**
 * Sends a request off the hot path and reads the whole response of any status. Rejects with a `GatewayError`.
 */
export async function fetchDocument(send: Send, request: DocumentRequest): Promise<FetchedDocument> {
  const { origin, pathname, search } = new URL(request.url)
  const cancellation = createCancellation()
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new GatewayError('upstream_timeout', `no response within ${request.timeoutMs} ms`))
    cancellation.cancel()
  }, request.timeoutMs)
  timer.unref()

  async function read(): Promise<FetchedDocument> {
    const reply = await send({
      origin,
      path: pathname + search,
      method: request.method ?? 'GET',
      headers: { accept: 'application/json', ...request.headers },
      body: request.body,
      cancellation,
    })
    const bytes = await readAll(reply.body, request.maxBytes, 'upstream_too_large')
    return { status: reply.status, headers: reply.headers, text: bytes.toString('utf8') }
  }

  try {
    return await Promise.race([read(), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
