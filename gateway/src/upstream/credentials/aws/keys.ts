import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { unavailable } from '../cloud/fetch-token.ts'
import type { TimedToken } from '../token-cache.ts'
import type { AwsCredentials } from './sigv4.ts'

/** Requests temporary keys. Rejects with `GatewayError` (`credential_unavailable`). */
export type RequestKeys = () => Promise<TimedToken<AwsCredentials>>

/** Egress policy of requests for keys (source of `node`), and region of the token service. */
export type IdentityOptions = {
  readonly node: object
  readonly context: CompileContext
  readonly region: string | undefined
}

/** Lifetime of keys without an end. */
const defaultLifetimeMs = 300_000

/** Keys of a response, checked. */
export function timedKeys(
  found: { id: unknown; secret: unknown; sessionToken: unknown; end: unknown },
  { service, now }: { service: string; now(): number },
): TimedToken<AwsCredentials> {
  const { id, secret, sessionToken, end } = found
  if (!isKey(id) || !isKey(secret) || !(sessionToken === undefined || isKey(sessionToken)))
    throw unavailable(`${service}: response without valid keys`)
  const endMs = typeof end === 'string' ? Date.parse(end) : Number.NaN
  const lifetimeMs = Number.isNaN(endMs) ? defaultLifetimeMs : Math.max(0, endMs - now())
  return { token: { accessKeyId: id, secretAccessKey: secret, sessionToken }, lifetimeMs }
}

function isKey(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
}
