import {
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type Client,
  calculatePKCECodeChallenge,
  discoveryRequest,
  dynamicClientRegistrationRequest,
  generateRandomCodeVerifier,
  generateRandomState,
  None,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  processDynamicClientRegistrationResponse,
  processResourceDiscoveryResponse,
  resourceDiscoveryRequest,
  validateAuthResponse,
} from 'oauth4webapi'
import { browse } from './mcp-browser.ts'
import { redirectUri } from './mcp-oauth-client.ts'

const insecure = { [allowInsecureRequests]: true }

/**
 * An access token for the MCP endpoint at `url`, by the letter of the standards: `resource` (RFC 9728),
 * `issuer` (RFC 8414), registration (RFC 7591), PKCE, and `iss` and `state` of the redirect (RFC 9207).
 */
export async function strictToken(url: string, scope = 'openid'): Promise<string> {
  const endpoint = new URL(url)
  const resource = await processResourceDiscoveryResponse(
    endpoint,
    await resourceDiscoveryRequest(endpoint, insecure),
  )
  const issuer = new URL(resource.authorization_servers?.[0] ?? '')
  const server = await processDiscoveryResponse(
    issuer,
    await discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure }),
  )
  const registered: Client = await processDynamicClientRegistrationResponse(
    await dynamicClientRegistrationRequest(
      server,
      {
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      },
      insecure,
    ),
  )
  const verifier = generateRandomCodeVerifier()
  const state = generateRandomState()
  const start = new URL(server.authorization_endpoint ?? '')
  const query = {
    response_type: 'code',
    client_id: registered.client_id,
    redirect_uri: redirectUri,
    scope,
    state,
    resource: resource.resource,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(query)) start.searchParams.set(name, value)
  const parameters = validateAuthResponse(server, registered, await browse(start, redirectUri), state)
  const tokens = await processAuthorizationCodeResponse(
    server,
    registered,
    await authorizationCodeGrantRequest(server, registered, None(), parameters, redirectUri, verifier, {
      ...insecure,
      additionalParameters: { resource: resource.resource },
    }),
  )
  return tokens.access_token
}
