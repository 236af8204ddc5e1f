// A real OpenID provider (the oidc-provider package) for MCP clients: public clients register themselves,
// PKCE is required, everyone is logged in as Alice and consents, access tokens are JWTs for one resource.
// Plain JavaScript, because the package has no type declarations.
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import Provider from 'oidc-provider'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const signingKey = { ...privateKey.export({ format: 'jwk' }), kid: 'signs', use: 'sig', alg: 'RS256' }

/**
 * @param {{
 *   resource: string,
 *   claims: Record<string, unknown>,
 *   clients?: Record<string, unknown>[],
 *   registration?: boolean,
 *   tokenExpiresInSeconds: () => number,
 * }} options `tokenExpiresInSeconds` counts from now, so it may be below zero.
 * @returns {Promise<{ issuer: string, close: () => Promise<void> }>}
 */
export async function startOidcProvider({
  resource,
  claims,
  clients = [],
  registration = true,
  tokenExpiresInSeconds,
}) {
  const server = createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const address = server.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  const provider = createProvider({ issuer, resource, claims, clients, registration, tokenExpiresInSeconds })
  const answer = provider.callback()
  server.on('request', (request, response) => {
    const done = request.url?.startsWith('/interaction/')
      ? finishInteraction(provider, request, response)
      : answer(request, response)
    Promise.resolve(done).catch((error) => response.writeHead(500).end(String(error)))
  })
  return {
    issuer,
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve(undefined)))
    },
  }
}

function createProvider({ issuer, resource, claims, clients, registration, tokenExpiresInSeconds }) {
  return new Provider(issuer, {
    clients,
    scopes: ['openid', 'offline_access', 'profile', 'mcp'],
    clientDefaults: {
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: registration },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, indicator) => ({
          scope: 'openid offline_access profile mcp',
          audience: indicator,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    jwks: { keys: [signingKey] },
    ttl: { AccessToken: 300, RefreshToken: 3600, IdToken: 300, Grant: 3600, Session: 3600, Interaction: 300 },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    extraTokenClaims: () => claims,
    formats: {
      customizers: {
        jwt(_, __, parts) {
          parts.payload.exp = Math.floor(Date.now() / 1000) + tokenExpiresInSeconds()
        },
      },
    },
  })
}

/** Operates the provider's pages like a user. */
async function finishInteraction(provider, request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response)
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId: 'alice' } })
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session?.accountId, clientId: params.client_id })
  const { missingOIDCScope = [], missingOIDCClaims = [], missingResourceScopes = {} } = prompt.details
  grant.addOIDCScope(missingOIDCScope.join(' '))
  grant.addOIDCClaims(missingOIDCClaims)
  for (const [indicator, scopes] of Object.entries(missingResourceScopes)) {
    grant.addResourceScope(indicator, scopes.join(' '))
  }
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
}
