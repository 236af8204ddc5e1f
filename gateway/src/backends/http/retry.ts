import type { Cancellation } from '../../lib/cancellation.ts'
import { parseDuration } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { RetryConfig } from './config.ts'

/** Conditions and number of retries. */
export type RetryRule = {
  readonly attempts: number
  readonly backoffMs: number
  readonly codes: ReadonlySet<number>
  readonly methods: ReadonlySet<string>
}

/** Idempotent methods (RFC 9110 section 9.2.2). */
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

/** Whether a response counts as a failure. */
export function isRetriedReply({ codes, methods }: RetryRule, method: string, { status }: Reply): boolean {
  return codes.has(status) && methods.has(method)
}

/** Whether an error permits a retry: always if the backend cannot have received the request. */
export function isRetriedError({ methods }: RetryRule, method: string, error: unknown): boolean {
  if (!(error instanceof GatewayError)) return false
  if (error.code === 'upstream_connect') return true
  return methods.has(method) && (error.code === 'upstream_timeout' || error.code === 'upstream_reset')
}

/** The backoff before a retry, counted from 1. Half of it is random jitter, to spread concurrent retries. */
export function backoffOf({ backoffMs }: RetryRule, retry: number, random: () => number): number {
  const full = Math.min(backoffMs * 2 ** (retry - 1), maxBackoffMs)
  return full / 2 + (full / 2) * random()
}

/** Waits; rejects on disconnect of the client. */
export function pause(ms: number, cancellation: Cancellation): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    cancellation.onCancel(() => {
      clearTimeout(timer)
      reject(new GatewayError('request_aborted', 'the client closed the connection'))
    })
  })
}
