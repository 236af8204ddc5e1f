import type { Cancellation } from '../../lib/cancellation.ts'
import { parseDuration } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { RetryConfig } from './config.ts'

/** When and how often requests are sent again. */
export type RetryRule = {
  readonly attempts: number
  readonly backoffMs: number
  readonly codes: ReadonlySet<number>
  readonly methods: ReadonlySet<string>
}

/** RFC 9110 section 9.2.2: idempotent ones, for which twice means no more than once. */
const defaultMethods = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']
const defaultCodes = [502, 503, 504]
const defaultBackoff = '25ms'
const maxBackoffMs = 10_000

export function compileRetry(config: RetryConfig | undefined): RetryRule | undefined {
  const attempts = config === undefined ? 0 : (config.attempts ?? 1)
  if (config === undefined || attempts === 0) return undefined
  return {
    attempts,
    backoffMs: parseDuration(config.backoff ?? defaultBackoff) ?? 0,
    codes: new Set(config.codes ?? defaultCodes),
    methods: new Set(config.methods ?? defaultMethods),
  }
}

/** Whether an answer is as bad as none. */
export function isRetriedReply({ codes, methods }: RetryRule, method: string, { status }: Reply): boolean {
  return codes.has(status) && methods.has(method)
}

/** Whether a failure may be followed by another attempt: always where the backend cannot have seen the request. */
export function isRetriedError({ methods }: RetryRule, method: string, error: unknown): boolean {
  if (!(error instanceof GatewayError)) return false
  if (error.code === 'upstream_connect') return true
  return methods.has(method) && (error.code === 'upstream_timeout' || error.code === 'upstream_reset')
}

/** The wait before a retry, the first being 1; half of it at random, so that clients that failed together do not return together. */
export function backoffOf({ backoffMs }: RetryRule, retry: number, random: () => number): number {
  const full = Math.min(backoffMs * 2 ** (retry - 1), maxBackoffMs)
  return full / 2 + (full / 2) * random()
}

/** Waits; rejects as soon as the client has gone. */
export function pause(ms: number, cancellation: Cancellation): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    cancellation.onCancel(() => {
      clearTimeout(timer)
      reject(new GatewayError('request_aborted', 'the client closed the connection'))
    })
  })
}
