import { fetchDocument } from '../../../identity/jwt/fetch-document.ts'
import { type JsonObject, type JsonValue, parseJsonObject } from '../../../lib/json/json.ts'
import type { Gauge } from '../../../lib/planes/gauge.ts'
import { readAll } from '../../../net/http/body.ts'
import type { Reply, Send } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { jsonReply, providerUnavailable } from '../json-reply.ts'
import { compileRedirectUriPatterns } from '../redirect-uri-patterns.ts'

export type RegistrationOptions = {
  clientId: string | undefined
  allowedRedirectUris: readonly string[] | undefined
  /** Registration endpoint of the provider, used without a client id. */
  registrationUrl: string | undefined
  send: Send
  /** Registrations at the provider in progress. */
  active: Gauge
}

const maxBytes = 64 * 1024
const timeoutMs = 10_000
/** Limit of concurrent requests to the provider: registration is public. */
const maxConcurrent = 16

/** Compiles client registration (RFC 7591). */
export function compileRegistration(options: RegistrationOptions): (exchange: Exchange) => Promise<Reply> {
  const { clientId, allowedRedirectUris, registrationUrl } = options
  if (clientId !== undefined) {
    const register = fixedRegistration(clientId, allowedRedirectUris)
    return async (exchange) => register(await readObject(exchange))
  }
  if (registrationUrl !== undefined) {
    const relay = forwardedRegistration(registrationUrl, options)
    return async (exchange) => {
      const metadata = await readObject(exchange)
      if (metadata === undefined)
        return registrationError('invalid_client_metadata', 'the body must be a JSON object')
      return relay(metadata)
    }
  }
  return () =>
    Promise.resolve(
      registrationError(
        'invalid_client_metadata',
        'client registration is not available: clientId is required in the configuration of the gateway',
      ),
    )
}

/**
 * Returns the client id registered at the provider. Nothing is stored; requested values are echoed only if
 * clients rely on them.
 */
function fixedRegistration(clientId: string, allowed: readonly string[] | undefined) {
  const isAllowed = allowed && compileRedirectUriPatterns(allowed)
  return (metadata: JsonObject = {}): Reply => {
    const { redirect_uris: requested, client_name: name, scope } = metadata
    const uris = stringsOf(requested)
    if (isAllowed !== undefined && !(uris ?? []).every(isAllowed)) {
      return registrationError('invalid_redirect_uri', 'the gateway does not allow a redirect_uri')
    }
    return jsonReply(201, {
      client_id: clientId,
      client_id_issued_at: 0,
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: uris ?? [],
      ...(typeof name === 'string' ? { client_name: name } : {}),
      ...(typeof scope === 'string' ? { scope } : {}),
    })
  }
}

function forwardedRegistration(
  url: string,
  { send, active }: Pick<RegistrationOptions, 'send' | 'active'>,
): (metadata: JsonObject) => Promise<Reply> {
  return async (metadata) => {
    if (!active.tryAdd(1, maxConcurrent)) return providerUnavailable
    try {
      const { status, text } = await fetchDocument(send, {
        url,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(metadata),
        maxBytes,
        timeoutMs,
      })
      const isObject = parseJsonObject(text) !== undefined
      return isObject && status >= 200 && status < 500 ? jsonReply(status, text) : providerUnavailable
    } catch {
      // Clients need the failure, not its cause.
      return providerUnavailable
    } finally {
      active.subtract(1)
    }
  }
}

async function readObject({ body }: Exchange): Promise<JsonObject | undefined> {
  return parseJsonObject((await readAll(body, maxBytes, 'request_too_large')).toString('utf8'))
}

function stringsOf(value: JsonValue | undefined): string[] | undefined {
  if (!Array.isArray(value)) return undefined
  return value.filter((entry) => typeof entry === 'string')
}

function registrationError(error: string, description: string): Reply {
  return jsonReply(400, { error, error_description: description })
}
