import { createCancellation } from '../../../lib/cancellation.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { readAll } from '../../../net/http/body.ts'
import type { OutgoingRequest, Send } from '../../../net/http-client/send.ts'
import type { TimedToken } from '../token-cache.ts'

/** Requests a token for a scope. Rejects with `GatewayError` (`credential_unavailable`). */
export type RequestScope = (scope: string) => Promise<TimedToken>

/** Response of a service that issues credentials. `body` is empty if the text is not a JSON object. */
export type TokenFetch = {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly text: string
}

const maxResponseBytes = 64 * 1024

/**
 * Creates a request to a service that issues credentials. It rejects with `GatewayError`
 * (`credential_unavailable`) after `timeoutMs`, for failed connections and responses over 64 KiB.
 */
export function createTokenFetch(
  send: Send,
  timeoutMs: number,
): (request: OutgoingRequest) => Promise<TokenFetch> {
  return async ({ origin, path, method, headers, body, connection }) => {
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
      clearTimeout(timer)
    }
  }
}

/** The client receives no details: they describe the configuration. */
export function unavailable(reason: string, cause?: unknown): GatewayError {
  return new GatewayError('credential_unavailable', 'no credential for the backend is available', {
    cause: new Error(`credentials: ${reason}`, { cause }),
  })
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
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
