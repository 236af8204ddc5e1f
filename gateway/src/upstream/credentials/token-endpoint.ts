import { createCancellation } from '../../lib/cancellation.ts'
import { milliseconds } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { readAll } from '../../net/http/body.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { compileConnection } from '../connection.ts'
import { compileClientAuthentication } from './client-authentication.ts'
import { isCredential } from './credential.ts'
import type { TokenEndpointConfig } from './oauth-config.ts'
import { RequestNotSent } from './token-cache.ts'

/** A token of an authorization server. */
export type IssuedToken = {
  readonly token: string
  /** Undefined if the response has no `expires_in`. */
  readonly lifetimeMs: number | undefined
  /** `issued_token_type` of RFC 8693. */
  readonly issuedType: string | undefined
  /** `token_type` in lower case. */
  readonly type: string | undefined
}

/**
 * Requests a token. Rejects with `GatewayError`: `credential_refused` if the server refuses the token of the
 * client, `credential_forbidden` if it denies access, `credential_unavailable` for all other failures.
 */
export type RequestToken = (form: URLSearchParams) => Promise<IssuedToken>

const defaultTimeoutMs = 10_000
const maxResponseBytes = 64 * 1024
/** Limit on concurrent requests to one endpoint. */
const maxConcurrent = 64

/**
 * Compiles a token endpoint. `node` is the configuration object whose source determines the egress policy.
 * Throws if a file in its settings is unreadable.
 */
export function compileTokenEndpoint(
  config: TokenEndpointConfig,
  context: CompileContext,
  node: object = config,
): RequestToken {
  const { policies = {}, path = '/' } = config
  const { origin, isSecure } = originOf(config)
  const backendTLS = policies.backendTLS ?? (isSecure ? {} : undefined)
  const connection = compileConnection({ ...policies, backendTLS }, context.egress.of(node), context)
  const authenticate = compileClientAuthentication(config.clientAuth, context)
  const timeoutMs = milliseconds(policies.http?.requestTimeout) || defaultTimeoutMs
  let active = 0

  async function request(form: URLSearchParams): Promise<IssuedToken> {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
    authenticate(headers, form)
    const cancellation = createCancellation()
    const timer = setTimeout(() => cancellation.cancel(), timeoutMs)
    try {
      const body = Buffer.from(form.toString())
      const reply = await context.send({
        origin,
        path,
        method: 'POST',
        headers,
        body,
        cancellation,
        connection,
      })
      const text = (await readAll(reply.body, maxResponseBytes, 'upstream_too_large')).toString()
      return readResponse(reply, text)
    } catch (error) {
      if (error instanceof GatewayError && error.code.startsWith('credential_')) throw error
      const reason = cancellation.cancelled ? `no response within ${timeoutMs} ms` : reasonOf(error)
      throw unavailable(reason, error)
    } finally {
      clearTimeout(timer)
    }
  }

  return async (form) => {
    if (active >= maxConcurrent) {
      const cause = new Error('token endpoint: too many concurrent requests')
      throw new RequestNotSent('credential_unavailable', unavailableMessage, { cause })
    }
    active += 1
    try {
      return await request(form)
    } finally {
      active -= 1
    }
  }
}

/** Origin of a token endpoint. An endpoint at port 443 without a scheme uses TLS. */
export function originOf({ host, policies }: TokenEndpointConfig): { origin: string; isSecure: boolean } {
  const hasScheme = /^https?:\/\//.test(host)
  const isSecure = hasScheme
    ? host.startsWith('https:')
    : host.endsWith(':443') || policies?.backendTLS !== undefined
  const url = URL.parse(hasScheme ? host : `${isSecure ? 'https' : 'http'}://${host}`)
  if (url === null) throw new Error(`"${host}" is not host:port or an origin`)
  return { origin: url.origin, isSecure }
}

function reasonOf(error: unknown): string {
  return error instanceof GatewayError ? error.message : 'invalid response'
}

const unavailableMessage = 'no credential for the backend is available'

/** The client receives no details: they describe the configuration. */
function unavailable(reason: string, cause?: unknown): GatewayError {
  return new GatewayError('credential_unavailable', unavailableMessage, {
    cause: new Error(`token endpoint: ${reason}`, { cause }),
  })
}

function readResponse({ status }: Reply, text: string): IssuedToken {
  const response = parseObject(text)
  if (status !== 200) throw refusalOf(status, response?.['error'])
  const {
    access_token: token,
    expires_in: seconds,
    issued_token_type: issued,
    token_type: type,
  } = response ?? {}
  if (typeof token !== 'string' || !isCredential(token))
    throw unavailable('response without a valid access_token')
  return {
    token,
    lifetimeMs: lifetimeOf(seconds),
    issuedType: typeof issued === 'string' ? issued : undefined,
    type: typeof type === 'string' ? type.toLowerCase() : undefined,
  }
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

/** Some servers send the number as a text. */
function lifetimeOf(seconds: unknown): number | undefined {
  const value = typeof seconds === 'string' && seconds !== '' ? Number(seconds) : seconds
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value * 1_000 : undefined
}

/** Codes that concern the token of the client (RFC 6749 section 5.2, RFC 8693 section 2.2.2). */
const refusedCodes: ReadonlySet<unknown> = new Set(['invalid_grant', 'invalid_request', 'invalid_token'])

const errorForm = /^[a-z_]{1,40}$/

/** Descriptions of the server are not logged: they may contain tokens. */
function refusalOf(status: number, code: unknown): GatewayError {
  const known = typeof code === 'string' && errorForm.test(code) ? code : 'unknown'
  const reason = `status ${status}, error ${known}`
  const cause = new Error(`token endpoint: ${reason}`)
  if (status >= 400 && status < 500 && refusedCodes.has(code)) {
    const message = 'the authorization server of the backend refused the token of the client'
    return new GatewayError('credential_refused', message, { cause })
  }
  if (status < 500 && code === 'access_denied') {
    return new GatewayError('credential_forbidden', 'the authorization server of the backend denied access', {
      cause,
    })
  }
  return unavailable(reason)
}
