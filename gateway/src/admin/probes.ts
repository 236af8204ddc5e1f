import { parseRequestTarget } from '../lib/request-target.ts'
import type { IncomingRequest } from '../net/http/incoming-request.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { RenderedMetrics } from '../telemetry/exposition/exposition.ts'

/** Renders the metrics in the format that an `accept` header prefers. */
export type RenderMetrics = (accept: string) => Promise<RenderedMetrics>

/** Creates the handler of the stats address, for Prometheus at `/metrics`. */
export function createStats({
  render,
}: {
  render: RenderMetrics
}): (request: IncomingRequest) => Promise<Reply> {
  return async (request) => {
    const refusal = onlyGet(request, ['/metrics', '/stats/prometheus'])
    if (refusal) return refusal
    const accept = request.headers['accept']
    const { contentType, body } = await render(Array.isArray(accept) ? accept.join(',') : (accept ?? ''))
    return { status: 200, headers: { 'content-type': contentType, vary: 'accept' }, body }
  }
}

/**
 * Creates the handler of the readiness address: 200 if `pending` is empty, else 500 with the pending names.
 */
export function createReadiness(pending: () => readonly string[]): (request: IncomingRequest) => Reply {
  return (request) => {
    const refusal = onlyGet(request, ['/healthz/ready'])
    if (refusal) return refusal
    const missing = pending()
    return missing.length === 0
      ? text(200, 'ready\n')
      : text(500, `not ready, pending: ${missing.join(', ')}\n`)
  }
}

function onlyGet(request: IncomingRequest, paths: readonly string[]): Reply | undefined {
  const path = parseRequestTarget(request.target)?.path
  if (path === undefined || !paths.includes(path)) return text(404, 'not found\n')
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return text(405, 'method not allowed\n', { allow: 'GET, HEAD' })
  return undefined
}

function text(status: number, body: string, headers: Record<string, string> = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
    body: Buffer.from(body),
  }
}
