// A real OpenID provider (the oidc-provider package) for logins with a browser: a confidential client,
// claims of users at the UserInfo endpoint, rotated refresh tokens, logout. Plain JavaScript, because the
// package has no type declarations.
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import Provider from 'oidc-provider'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const signingKey = { ...privateKey.export({ format: 'jwk' }), kid: 'signs', use: 'sig', alg: 'RS256' }

export const loginClient = { id: 'tollgate', secret: 'client-secret-canary-5518-0123456789' }

/**
 * @param {{
 *   redirectUris: string[],
 *   postLogoutRedirectUris?: string[],
 *   users: Record<string, Record<string, unknown>>,
 *   user?: () => string | undefined,
 *   accessTokenSeconds?: () => number,
 *   port?: number,
 * }} options Claims by name of the user. `user` logs in without a page; without it, a page asks for the name.
 * @returns {Promise<{
 *   issuer: string,
 *   grants: string[],
 *   block: (user: string) => void,
 *   close: () => Promise<void>,
 * }>} `grants` are the grant types of the token requests so far. A blocked user receives no tokens.
 */
export async function startLoginProvider(options) {
  const server = createServer()
  await new Promise((resolve) => server.listen(options.port ?? 0, '127.0.0.1', () => resolve(undefined)))
  const address = server.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  const blocked = new Set()
  const grants = []
  const provider = createProvider(issuer, options, blocked)
  provider.on('grant.success', (context) => grants.push(context.oidc.params?.grant_type ?? ''))
  provider.on('grant.error', (context) => grants.push(`failed ${context.oidc.params?.grant_type ?? ''}`))
  const answer = provider.callback()
  server.on('request', (request, response) => {
    const done = request.url?.startsWith('/interaction/')
      ? interact(provider, { request, response, user: options.user })
      : answer(request, response)
    Promise.resolve(done).catch((error) => response.writeHead(500).end(String(error)))
  })
  return {
    issuer,
    grants,
    block: (user) => blocked.add(user),
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve(undefined)))
    },
  }
}

function createProvider(
  issuer,
  { redirectUris, postLogoutRedirectUris = [], users, accessTokenSeconds },
  blocked,
) {
  return new Provider(issuer, {
    clients: [
      {
        client_id: loginClient.id,
        client_secret: loginClient.secret,
        redirect_uris: redirectUris,
        post_logout_redirect_uris: postLogoutRedirectUris,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    claims: { openid: ['sub'], email: ['email'], profile: ['name', 'groups', 'number'] },
    // As in the specification: claims of scopes are at the UserInfo endpoint.
    conformIdTokenClaims: true,
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    features: {
      devInteractions: { enabled: false },
      revocation: { enabled: true },
      rpInitiatedLogout: { enabled: true, logoutSource: confirmLogout, postLogoutSuccessSource: endLogout },
    },
    cookies: { keys: ['provider-cookie-key'] },
    jwks: { keys: [signingKey] },
    ttl: {
      AccessToken: () => accessTokenSeconds?.() ?? 300,
      ...{
        AuthorizationCode: 60,
        IdToken: 300,
        RefreshToken: 3600,
        Grant: 3600,
        Session: 3600,
        Interaction: 300,
      },
    },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, id) =>
      blocked.has(id) || users[id] === undefined
        ? undefined
        : { accountId: id, claims: () => ({ sub: id, ...users[id] }) },
  })
}

/** The logout form, without its script. */
function confirmLogout(context, form) {
  context.body = `<!doctype html><title>Log out</title>${form}<button autofocus type="submit" form="op.logoutForm" value="yes" name="logout">Yes</button>`
}

/** The end of a logout without a registered address, without fonts of another server. */
function endLogout(context) {
  context.body = '<!doctype html><title>Logged out</title><h1>Logged out at the provider</h1>'
}

/** Asks for the name of the user, or logs in as `user`, and consents. */
async function interact(provider, { request, response, user }) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response)
  if (prompt.name === 'login') {
    const name = user === undefined ? await submittedName(request) : user()
    if (user !== undefined && name === undefined)
      return provider.interactionFinished(request, response, { error: 'access_denied' })
    if (name === undefined) {
      response.writeHead(200, { 'content-type': 'text/html' })
      return response.end(
        '<!doctype html><html lang="en"><title>Provider</title><form method="post"><label>Name <input name="name" autofocus></label><button>Log in</button></form></html>',
      )
    }
    return provider.interactionFinished(request, response, { login: { accountId: name } })
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session?.accountId, clientId: params.client_id })
  const { missingOIDCScope = [], missingOIDCClaims = [] } = prompt.details
  grant.addOIDCScope(missingOIDCScope.join(' '))
  grant.addOIDCClaims(missingOIDCClaims)
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
}

async function submittedName(request) {
  if (request.method !== 'POST') return undefined
  let text = ''
  for await (const chunk of request) text += chunk
  return new URLSearchParams(text).get('name') || undefined
}
