import { parseRequestTarget } from '../lib/request-target.ts'
import type { IncomingRequest } from '../net/http/incoming-request.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'

/** The stats address: Prometheus scrapes `/metrics`. */
export function createStats(metrics: Metrics): (request: IncomingRequest) => Promise<Reply> {
  return async (request) => {
    const refusal = onlyGet(request, ['/metrics', '/stats/prometheus'])
    if (refusal) return refusal
    const { contentType, text: body } = await metrics.render()
    return { status: 200, headers: { 'content-type': contentType }, body: Buffer.from(body) }
  }
}

/** The readiness address: 200 once everything in `pending` is done, 500 with the names of what is not. */
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
