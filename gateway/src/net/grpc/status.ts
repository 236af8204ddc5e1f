import type { HeaderField } from '../http2-client/hpack/static-table.ts'
import type { StreamEnd } from '../http2-client/stream.ts'

/** Status of a call. `status` is a gRPC status code: 4 deadline exceeded, 14 unavailable. */
export type GrpcStatus =
  | { readonly kind: 'ok' }
  | { readonly kind: 'failed'; readonly status: number; readonly reason: string; readonly cause?: unknown }

/** gRPC status codes that this client creates. */
export const statusCodes = {
  cancelled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const

/** Error details come from the server and are logged. */
const longestReason = 300

export function failed(status: number, reason: string, cause?: unknown): GrpcStatus & { kind: 'failed' } {
  return { kind: 'failed', status, reason: reason.slice(0, longestReason), cause }
}

const ok: GrpcStatus = { kind: 'ok' }

/** Result of a header block: the head of the response, an informational response, or the end of the call. */
export type ReadHeaders =
  | { readonly kind: 'head' }
  | { readonly kind: 'informational' }
  | { readonly kind: 'end'; readonly status: GrpcStatus }

const head: ReadHeaders = { kind: 'head' }
const informational: ReadHeaders = { kind: 'informational' }

/** Interprets the header block before messages. `isLast`: there are no messages and no trailers. */
export function readHead(fields: readonly HeaderField[] | undefined, isLast: boolean): ReadHeaders {
  if (fields === undefined) return end(tooLarge())
  if (isLast) return end(readTrailers(fields))
  const status = fieldOf(fields, ':status')
  if (status?.startsWith('1')) return informational
  if (status !== '200') return end(statusOfHttp(status))
  if (fieldOf(fields, 'content-type')?.startsWith('application/grpc') !== true)
    return end(failed(statusCodes.unknown, 'the response is not of gRPC'))
  return head
}

/** Interprets the header block after messages, or the only one. */
export function readTrailers(fields: readonly HeaderField[] | undefined): GrpcStatus {
  if (fields === undefined) return tooLarge()
  const text = fieldOf(fields, 'grpc-status')
  if (text === '0') return ok
  if (text === undefined) return statusOfHttp(fieldOf(fields, ':status'))
  const code = /^\d{1,2}$/.test(text) ? Number(text) : statusCodes.unknown
  return failed(code, decodeReason(fieldOf(fields, 'grpc-message') ?? ''))
}

function end(status: GrpcStatus): ReadHeaders {
  return { kind: 'end', status }
}

function tooLarge(): GrpcStatus {
  return failed(statusCodes.resourceExhausted, 'the header fields of the response are too large')
}

function fieldOf(fields: readonly HeaderField[], name: string): string | undefined {
  for (const field of fields) if (field[0] === name) return field[1]
  return undefined
}

/** Statuses of responses of other servers, by the gRPC specification. */
const httpStatuses: Readonly<Record<string, number>> = {
  400: statusCodes.internal,
  401: statusCodes.unauthenticated,
  403: statusCodes.permissionDenied,
  404: statusCodes.unimplemented,
  429: statusCodes.unavailable,
  502: statusCodes.unavailable,
  503: statusCodes.unavailable,
  504: statusCodes.unavailable,
}

function statusOfHttp(status: string | undefined): GrpcStatus {
  if (status === undefined || status === '200')
    return failed(statusCodes.unknown, 'the response has no gRPC status')
  return failed(httpStatuses[status] ?? statusCodes.unknown, `the response has status ${status.slice(0, 3)}`)
}

/** Percent-encoded UTF-8. An invalid text stays as it is. */
function decodeReason(text: string): string {
  const limited = text.slice(0, 9 * longestReason)
  if (!limited.includes('%')) return limited
  try {
    return decodeURIComponent(limited)
  } catch {
    return limited
  }
}

/** Statuses of the error codes of HTTP/2: cancelled, too many requests, insecure. */
const resetStatuses: Readonly<Record<number, number>> = {
  8: statusCodes.cancelled,
  11: statusCodes.resourceExhausted,
  12: statusCodes.permissionDenied,
}

/** Status of a call whose stream has ended before its trailers. */
export function statusOfEnd(ended: StreamEnd): GrpcStatus & { kind: 'failed' } {
  switch (ended.kind) {
    case 'reset': {
      const status = resetStatuses[ended.code] ?? statusCodes.internal
      return failed(status, `the server reset the stream with code ${ended.code}`)
    }
    case 'unprocessed':
      return failed(statusCodes.unavailable, ended.reason)
    case 'lost':
      return failed(statusCodes.unavailable, ended.reason, ended.cause)
    case 'overloaded':
      return failed(statusCodes.resourceExhausted, 'too many calls wait for a connection')
  }
}
