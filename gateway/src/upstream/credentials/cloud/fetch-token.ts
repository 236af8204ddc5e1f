import { createCancellation } from '../../../lib/cancellation.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { readAll } from '../../../net/http/body.ts'
import type { OutgoingRequest, Send } from '../../../net/http-client/send.ts'
import { RequestNotSent, type TimedToken } from '../token-cache.ts'

/** Requests a token for a scope. Rejects with `GatewayError` (`credential_unavailable`). */
export type RequestScope = (scope: string) => Promise<TimedToken>

/** Response of a service that issues credentials. `body` is empty if the text is not a JSON object. */
export type TokenFetch = {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly text: string
}

const maxResponseBytes = 64 * 1024
/** Limit on concurrent requests of one identity: clients determine the names of sessions of a role. */
const maxConcurrent = 64

/**
 * Creates a request to a service that issues credentials. It rejects with `GatewayError`
 * (`credential_unavailable`) after `timeoutMs`, for failed connections and responses over 64 KiB, and with
 * `RequestNotSent` beyond 64 concurrent requests.
 */
export function createTokenFetch(
  send: Send,
  timeoutMs: number,
): (request: OutgoingRequest) => Promise<TokenFetch> {
  let active = 0
  return async ({ origin, path, method, headers, body, connection }) => {
    if (active >= maxConcurrent) {
      const cause = new Error('credentials: too many concurrent requests')
      throw new RequestNotSent('credential_unavailable', unavailableMessage, { cause })
    }
    active += 1
    const cancellation = createCancellation()
    const timer = setTimeout(() => cancellation.cancel(), timeoutMs)
    try {
      const reply = await send({ origin, path, method, headers, body, connection, cancellation })
      const text = (await readAll(reply.body, maxResponseBytes, 'upstream_too_large')).toString()
      return { status: reply.status, body: parseObject(text), text }
    } catch (error) {
      throw unavailable(
        cancellation.cancelled ? `no response within ${timeoutMs} ms` : reasonOf(error),
        error,
      )
    } finally {
      active -= 1
      clearTimeout(timer)
    }
  }
}

const unavailableMessage = 'no credential for the backend is available'

/** The client receives no details: they describe the configuration. */
export function unavailable(reason: string, cause?: unknown): GatewayError {
  return new GatewayError('credential_unavailable', unavailableMessage, {
    cause: new Error(`credentials: ${reason}`, { cause }),
  })
}

/** Members of a JSON object; none for other texts. */
export function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

function reasonOf(error: unknown): string {
  return error instanceof GatewayError ? error.message : 'invalid response'
}
