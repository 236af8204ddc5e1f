import { writeJsonIncrementally } from '../../lib/json/write-incrementally.ts'
import type { YieldPoint } from '../../lib/scheduling/yielding.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { type Refusal, refusal } from '../change/change.ts'
import type { ApiRequest } from './request.ts'

/** Error response: a JSON string, or a problem document (RFC 9457) if the client accepts it. */
export function refuse({ status, message }: Refusal, { headers }: ApiRequest): Reply {
  const accept = firstHeader(headers, 'accept') ?? ''
  if (!/application\/problem\+json/i.test(accept)) return json(status, message)
  const title = titles[status] ?? 'Error'
  const reply = json(status, { type: 'about:blank', title, status, detail: message })
  return { ...reply, headers: { ...reply.headers, 'content-type': 'application/problem+json' } }
}

const titles: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

export function notAllowed(method: string, allowed: string, request: ApiRequest): Reply {
  const reply = refuse(refusal(405, `method ${method.slice(0, 50)} is not allowed here`), request)
  return { ...reply, headers: { ...reply.headers, allow: allowed } }
}

export function json(status: number, value: unknown, headers: Headers = {}): Reply {
  return { status, headers: { ...jsonHeaders, ...headers }, body: Buffer.from(JSON.stringify(value)) }
}

/** Response with up to 100,000 records. */
export async function largeJson(
  value: unknown,
  { yieldPoint }: { readonly yieldPoint: YieldPoint },
): Promise<Reply> {
  return { status: 200, headers: { ...jsonHeaders }, body: await writeJsonIncrementally(value, yieldPoint) }
}

/** Copied for each response: policies of a gateway modify the headers of a reply. */
const jsonHeaders: Readonly<Headers> = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}
