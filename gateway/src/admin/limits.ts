import { isSource } from '../net/http/body.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { LimitSnapshot } from '../policies/rate-limit/limit-snapshot.ts'
import type { ApiHandler } from './admin.ts'

const path = '/api/limits'

/** Handles `/api/limits`, the rate limit state that explains a 429; passes other requests to `next`. */
export function withLimits(read: () => Promise<LimitSnapshot>, next: ApiHandler): ApiHandler {
  return async (request) => {
    const { method, target, body } = request
    if (target !== path && !target.startsWith(`${path}?`)) return next(request)
    if (isSource(body)) body.cancel()
    if (method === 'GET' || method === 'HEAD') return json(200, await read())
    return json(405, `${path} is only read`, { allow: 'GET, HEAD' })
  }
}

function json(status: number, value: unknown, headers: Record<string, string> = {}): Reply {
  return {
    status,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...headers,
    },
    body: Buffer.from(JSON.stringify(value)),
  }
}
