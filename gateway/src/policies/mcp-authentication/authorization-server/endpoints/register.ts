import { type JsonValue, parseJsonObject } from '../../../../lib/json/json.ts'
import { readAll } from '../../../../net/http/body.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { jsonReply } from '../../json-reply.ts'
import { displayName } from '../clients/display-name.ts'
import { readRedirectTarget } from '../clients/redirect-targets.ts'
import type { SealedValues } from '../tokens/sealed-values.ts'
import { noStore, oauthError } from './oauth-errors.ts'

export type RegisterOptions = {
  sealed: SealedValues
  isAllowedRedirect(uri: string): boolean
  now(): number
}

const maxBytes = 64 * 1024
const maxRedirectUris = 10
/** Total length: the client id contains the URIs, and URLs contain the client id. */
const maxRedirectLength = 1_024

/**
 * Registration endpoint (RFC 7591). The client id contains the sealed registration, so registrations use no
 * memory and are valid at every replica with the same session key.
 */
export function compileRegister({ sealed, isAllowedRedirect, now }: RegisterOptions) {
  return async (exchange: Exchange): Promise<Reply> => {
    const metadata = parseJsonObject(
      (await readAll(exchange.body, maxBytes, 'request_too_large')).toString('utf8'),
    )
    if (metadata === undefined) {
      return oauthError(exchange, 'invalid_client_metadata', 'the body must be a JSON object')
    }
    const uris = redirectUrisOf(metadata['redirect_uris'])
    if (uris === undefined || !uris.every(isAllowedRedirect)) {
      const description =
        'redirect_uris must be HTTPS, HTTP on loopback, or of an app, and allowed by the gateway'
      return oauthError(exchange, 'invalid_redirect_uri', description)
    }
    if (!includes(metadata['grant_types'], 'authorization_code')) {
      return oauthError(exchange, 'invalid_client_metadata', 'grant_types must include authorization_code')
    }
    if (!includes(metadata['response_types'], 'code')) {
      return oauthError(exchange, 'invalid_client_metadata', 'response_types must include code')
    }
    const name = displayName(metadata['client_name'])
    const named = name === undefined ? {} : { n: name }
    const { scope } = metadata
    return jsonReply(
      201,
      {
        client_id: sealed.seal('client', { r: uris, ...named }, undefined),
        client_id_issued_at: Math.floor(now() / 1000),
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        redirect_uris: uris,
        ...(name === undefined ? {} : { client_name: name }),
        ...(typeof scope === 'string' ? { scope: scope.slice(0, maxRedirectLength) } : {}),
      },
      noStore,
    )
  }
}

function redirectUrisOf(value: JsonValue | undefined): string[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > maxRedirectUris) return undefined
  const uris = value.filter((uri) => typeof uri === 'string')
  if (uris.length < value.length || uris.join('').length > maxRedirectLength) return undefined
  return uris.every((uri) => readRedirectTarget(uri) !== undefined) ? uris : undefined
}

/** Whether a list includes a value. An absent list means the default, the code flow (RFC 7591 section 2). */
function includes(list: JsonValue | undefined, wanted: string): boolean {
  return list === undefined || (Array.isArray(list) && list.includes(wanted))
}
