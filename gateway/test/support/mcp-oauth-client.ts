import { randomUUID } from 'node:crypto'
import type {
  OAuthClientProvider as OAuthClientProvider2,
  OAuthDiscoveryState,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import type { OAuthClientProvider as OAuthClientProvider1 } from '@modelcontextprotocol/sdk/client/auth.js'
import { browse } from './mcp-browser.ts'
import {
  type ConnectOptions,
  connectClient,
  finishAuthorization,
  type Generation,
  type McpClient,
} from './mcp-clients.ts'

/** OAuth state of an official client, in memory. */
export type OAuthMemory = {
  provider: OAuthClientProvider1 & OAuthClientProvider2
  tokens(): StoredOAuthTokens | undefined
  clientId(): string | undefined
  /** Where the user was sent last. */
  authorizationUrl(): URL | undefined
}

/** Nothing listens there: the journey ends when the provider leads to it. */
export const redirectUri = 'http://127.0.0.1:9/callback'

/** `registered` is the id of a client that the provider knows already. */
export function createOAuthMemory(registered?: string): OAuthMemory {
  let tokens: StoredOAuthTokens | undefined
  let client = registered === undefined ? undefined : { client_id: registered }
  let discovered: OAuthDiscoveryState | undefined
  let verifier = ''
  let url: URL | undefined
  const state = randomUUID()
  return {
    provider: {
      redirectUrl: redirectUri,
      clientMetadata: {
        client_name: 'tollgate-test',
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      },
      state: () => state,
      clientInformation: () => client,
      saveClientInformation(information) {
        client = information
      },
      tokens: () => tokens,
      saveTokens(saved) {
        tokens = saved
      },
      redirectToAuthorization(to) {
        url = to
      },
      saveCodeVerifier(saved) {
        verifier = saved
      },
      codeVerifier: () => verifier,
      saveDiscoveryState(state) {
        discovered = state
      },
      discoveryState: () => discovered,
    },
    tokens: () => tokens,
    clientId: () => client?.client_id,
    authorizationUrl: () => url,
  }
}

/**
 * The whole way of a client that knows nothing but the URL of the MCP endpoint: to a connected session, or to
 * the error.
 */
export async function authorizeAndConnect(
  generation: Generation,
  url: string,
  memory: OAuthMemory,
): Promise<McpClient> {
  const options: ConnectOptions = { authProvider: memory.provider }
  const refusal = await connectClient(generation, url, options).then(
    () => undefined,
    (error: unknown) => error,
  )
  const start = memory.authorizationUrl()
  if (start === undefined) throw refusal ?? new Error('the client was never asked to authorize')
  await finishAuthorization(generation, url, options, await browse(start, redirectUri))
  return connectClient(generation, url, options)
}
