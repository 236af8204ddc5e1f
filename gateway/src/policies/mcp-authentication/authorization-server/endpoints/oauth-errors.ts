import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { jsonReply } from '../../json-reply.ts'

/**
 * Error codes of RFC 6749 sections 4.1.2.1 and 5.2, OpenID Connect, RFC 7591 section 3.2.2 and RFC 8707
 * section 2.
 */
export type OAuthError =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'access_denied'
  | 'interaction_required'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'
  | 'server_error'
  | 'temporarily_unavailable'

const statuses: Partial<Record<OAuthError, number>> = { server_error: 500, temporarily_unavailable: 503 }

/** Creates a JSON error reply. */
export function oauthError(exchange: Exchange, error: OAuthError, description: string): Reply {
  exchange.log.refusedBy = `mcp-authentication: ${error}`
  const status = statuses[error] ?? 400
  return jsonReply(status, { error, error_description: description }, noStore)
}

export const noStore: Readonly<Record<string, string>> = { 'cache-control': 'no-store', pragma: 'no-cache' }
