import { compileCheckedCel } from '../../cel/checked.ts'
import type { Cancellation } from '../../lib/cancellation.ts'
import { parseDuration } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { isSource } from '../../net/http/body.ts'
import { discard, type Reply, type Send } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { recordResponse } from '../../pipeline/facts/response-facts.ts'
import { evaluateOrDefault } from '../../pipeline/rules.ts'
import { type RetryConfig, retryVariables } from './config.ts'

/** Conditions and number of retries. */
export type RetryRule = {
  readonly attempts: number
  readonly backoffMs: number
  readonly codes: ReadonlySet<number>
  readonly methods: ReadonlySet<string>
  /** Whether the request may be retried; undefined permits it. */
  readonly permits: ((exchange: Exchange) => boolean) | undefined
  /** Whether a response counts as a failure regardless of its status. */
  readonly fails: ((exchange: Exchange, reply: Reply) => boolean) | undefined
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
    permits: compilePrecondition(config.precondition),
    fails: compileCondition(config.condition),
  }
}

function compilePrecondition(source: string | undefined): RetryRule['permits'] {
  if (source === undefined) return undefined
  const program = compileCheckedCel(source, retryVariables.precondition)
  return ({ facts }) => evaluateOrDefault(program, facts, false)
}

function compileCondition(source: string | undefined): RetryRule['fails'] {
  if (source === undefined) return undefined
  const program = compileCheckedCel(source, retryVariables.condition)
  return (exchange, reply) => {
    recordResponse(exchange, reply)
    return evaluateOrDefault(program, exchange.facts, false)
  }
}

/** Whether a response counts as a failure. The condition applies where the request is present. */
export function isRetriedReply(
  { codes, methods, fails }: RetryRule,
  method: string,
  reply: Reply,
  exchange?: Exchange,
): boolean {
  if (!methods.has(method)) return false
  return codes.has(reply.status) || (exchange !== undefined && fails?.(exchange, reply) === true)
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
export function pause(ms: number, cancellation: Cancellation | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    cancellation?.onCancel(() => {
      clearTimeout(timer)
      reject(new GatewayError('request_aborted', 'the client closed the connection'))
    })
  })
}

export type RetryingOptions = {
  /** `always` permits retries of every method. */
  readonly repeats: 'always' | 'byMethod'
  readonly random: () => number
}

/** Decorates `send` with retries at the same server. A request with a streamed body is sent once. */
export function retrying(send: Send, given: RetryRule, { repeats, random }: RetryingOptions): Send {
  const rule = repeats === 'byMethod' ? given : { ...given, methods: new Set([...given.methods, 'POST']) }
  return async (request) => {
    const { method, body, cancellation } = request
    const attempts = typeof body === 'object' && isSource(body) ? 0 : rule.attempts
    for (let retries = 0; ; retries += 1) {
      const headers =
        retries === 0 ? request.headers : { ...request.headers, 'x-retry-attempt': `${retries}` }
      try {
        const reply = await send({ ...request, headers })
        if (retries === attempts || !isRetriedReply(rule, method, reply)) return reply
        discard(reply)
      } catch (error) {
        if (retries === attempts || !isRetriedError(rule, method, error)) throw error
      }
      await pause(backoffOf(rule, retries + 1, random), cancellation)
    }
  }
}
