import { parseJsonObject } from '../../../lib/json/json.ts'

/** A refusal of the API server, or a call without a response. The message contains no secret. */
export class ApiError extends Error {
  /** HTTP status; 0 without a response. */
  readonly status: number
  /** `reason` of the Status object, for example `NotFound`, `Conflict`, `Expired`; else empty. */
  readonly reason: string
  /** Delay that the server requests. */
  readonly retryAfterMs: number | undefined

  constructor(
    {
      status,
      reason = '',
      retryAfterMs,
    }: { status: number; reason?: string; retryAfterMs?: number | undefined },
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options)
    this.name = 'ApiError'
    this.status = status
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}

const longestMessage = 1_000

/** The error of a response with a status of 300 or more; its body is a Status object or any text. */
export function refusal(
  call: string,
  status: number,
  body: string,
  retryAfter: string | undefined,
): ApiError {
  const object = parseJsonObject(body)
  const reason = typeof object?.['reason'] === 'string' ? object['reason'] : ''
  const message = typeof object?.['message'] === 'string' ? object['message'] : body.trim()
  const text = message === '' ? reason : message
  const seconds = retryAfter === undefined ? Number.NaN : Number(retryAfter)
  const retryAfterMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined
  return new ApiError(
    { status, reason, retryAfterMs },
    `${call}: ${status} ${text.slice(0, longestMessage)}`.trimEnd(),
  )
}

/** Whether an error is a refusal with this HTTP status. */
export function hasStatus(error: unknown, status: number): error is ApiError {
  return error instanceof ApiError && error.status === status
}
