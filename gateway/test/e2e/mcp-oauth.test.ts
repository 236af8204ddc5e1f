import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { generations } from '../support/mcp-clients.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { type IdentityProviderOptions, startIdentityProvider } from '../support/mcp-identity-provider.ts'
import { idpAShape } from '../support/mcp-idp-a.ts'
import { clientId as idpBClientId, idpBShape } from '../support/mcp-idp-b.ts'
import { keycloakShape } from '../support/mcp-keycloak.ts'
import { authorizeAndConnect, createOAuthMemory } from '../support/mcp-oauth-client.ts'
import { startOidcProvider } from '../support/mcp-oidc-provider.mjs'
import { openSession } from '../support/mcp-raw.ts'
import { connectMcpRemote } from '../support/mcp-remote.ts'
import { strictToken } from '../support/mcp-strict-client.ts'
import { until } from '../support/wait.ts'

// The path of a client that has only the URL of the MCP endpoint: 401, metadata, registration, authorization
// code with PKCE, call, expiry, refresh. Against a real OpenID provider and doubles of idpA and idpB.

const targets = [programTarget('files')]

/** Tokens are accepted for a minute after expiry (clock skew); one this old is about to be refused. */
const almostOver = -57

type AuthorizationServers = 'gateway' | 'provider'
type Endpoint = { url: string; tokensExpireIn(seconds: number): void }

/** A real provider, which sends `iss` with every code. */
async function oidcEndpoint(authorizationServers: AuthorizationServers): Promise<Endpoint> {
  let seconds = 300
  const { mcpUrl } = await startMcpGateway(async (url) => {
    const claims = { roles: ['reader'] }
    const { issuer, close } = await startOidcProvider({
      resource: url,
      claims,
      tokenExpiresInSeconds: () => seconds,
    })
    endAfter('test', close)
    const mcpAuthentication = {
      issuer,
      audiences: [url],
      authorizationServers,
      jwks: `${issuer}/jwks`,
      resourceMetadata: { resource: url, scopesSupported: ['openid', 'mcp'] },
    }
    return { targets, policies: { mcpAuthentication, authorization: { rules: ['"reader" in jwt.roles'] } } }
  })
  return {
    url: mcpUrl,
    tokensExpireIn(next) {
      seconds = next
    },
  }
}

async function idpAEndpoint(
  authorizationServers: AuthorizationServers,
  options: IdentityProviderOptions = {},
  clientId: string | undefined = 'client-of-the-gateway',
): Promise<Endpoint> {
  let seconds = 300
  const { mcpUrl } = await startMcpGateway(async (url) => {
    const expiresInSeconds = () => seconds
    const provider = await startIdentityProvider(idpAShape({ roles: ['reader'] }), {
      expiresInSeconds,
      ...options,
    })
    const mcpAuthentication = {
      issuer: provider.issuer,
      audiences: [url],
      provider: { idpA: {} },
      authorizationServers,
      ...(clientId === undefined ? {} : { clientId }),
      resourceMetadata: { resource: url, scopesSupported: ['openid'] },
    }
    return { targets, policies: { mcpAuthentication, authorization: { rules: ['"reader" in jwt.roles'] } } }
  })
  return {
    url: mcpUrl,
    tokensExpireIn(next) {
      seconds = next
    },
  }
}

async function idpBEndpoint(): Promise<Endpoint> {
  let seconds = 300
  const { mcpUrl } = await startMcpGateway(async (url) => {
    const provider = await startIdentityProvider(idpBShape(['staff']), { expiresInSeconds: () => seconds })
    const mcpAuthentication = {
      issuer: provider.issuer,
      audiences: [idpBClientId],
      provider: { idpB: {} },
      clientId: idpBClientId,
      resourceMetadata: { resource: url, scopesSupported: ['openid', 'profile'] },
    }
    return { targets, policies: { mcpAuthentication, authorization: { rules: ['"staff" in jwt.groups'] } } }
  })
  return {
    url: mcpUrl,
    tokensExpireIn(next) {
      seconds = next
    },
  }
}

const endpoints: [string, () => Promise<Endpoint>][] = [
  ['a real OpenID provider', () => oidcEndpoint('provider')],
  ['idpA', () => idpAEndpoint('gateway')],
  ['idpA that takes registrations itself', () => idpAEndpoint('gateway', {}, undefined)],
  ['idpB', idpBEndpoint],
]

describe.each(endpoints)('with %s', (_, start) => {
  it.each(generations)('%s authorizes, calls, and refreshes a token that has expired', async (generation) => {
    const endpoint = await start()
    endpoint.tokensExpireIn(almostOver)
    const memory = createOAuthMemory()
    const client = await authorizeAndConnect(generation, endpoint.url, memory)
    expect(await client.call('whoami')).toBe('files')
    const first = memory.tokens()?.access_token
    expect(first).toBeTypeOf('string')

    endpoint.tokensExpireIn(300)
    await until('the token is refused and replaced', async () => {
      expect(await client.call('whoami')).toBe('files')
      return memory.tokens()?.access_token !== first
    })
  })

  it('a client that checks every letter of the standards gets a token that works', async () => {
    const { url } = await start()
    const token = await strictToken(url, 'openid profile')
    const session = await openSession(url, { authorization: `Bearer ${token}` })
    expect(await session.request('tools/call', { name: 'whoami' })).toMatchObject({
      content: [{ text: 'files' }],
    })
  })
})

// Which client works with which setting: the table of docs/mcp-authentication.md.

const clients = ['SDK 1', 'SDK 2', 'mcp-remote', 'oauth4webapi'] as const
type Client = (typeof clients)[number]

async function arrives(client: Client, url: string): Promise<boolean> {
  try {
    if (client === 'oauth4webapi') {
      await openSession(url, { authorization: `Bearer ${await strictToken(url)}` })
    } else if (client === 'mcp-remote') {
      await (await connectMcpRemote(url)).listTools()
    } else {
      await authorizeAndConnect(client, url, createOAuthMemory())
    }
    return true
  } catch {
    return false
  }
}

describe('the setting authorizationServers', () => {
  const providers: Record<string, (setting: AuthorizationServers) => Promise<Endpoint>> = {
    'a provider that sends iss': (setting) => idpAEndpoint(setting, { sendsIss: true }, undefined),
    'a provider without iss': (setting) => idpAEndpoint(setting, {}, undefined),
    'a real OpenID provider, which sends iss': oidcEndpoint,
  }

  it.each([
    // Its own metadata offers a registration that wants a management key, which no client has.
    ['a provider without iss', 'provider', []],
    ['a provider without iss', 'gateway', ['SDK 1', 'SDK 2', 'mcp-remote', 'oauth4webapi']],
    // RFC 9207: an `iss` that is there has to be the issuer, and the issuer here is the gateway.
    ['a provider that sends iss', 'gateway', ['SDK 1']],
    ['a real OpenID provider, which sends iss', 'gateway', ['SDK 1']],
    ['a real OpenID provider, which sends iss', 'provider', ['SDK 1', 'SDK 2', 'mcp-remote', 'oauth4webapi']],
  ] as const)('%s, %s: works for %j', async (provider, setting, expected) => {
    const endpoint = await providers[provider]?.(setting)
    const working: Client[] = []
    for (const client of clients) {
      if (await arrives(client, endpoint?.url ?? '')) working.push(client)
    }
    expect(working).toEqual(expected)
  })
})

describe('provider keycloak without further settings', () => {
  it('works for every client', async () => {
    const { mcpUrl } = await startMcpGateway(async (url) => {
      const { issuer } = await startIdentityProvider(keycloakShape({}), { sendsIss: true })
      const resourceMetadata = { resource: url, scopesSupported: ['openid'] }
      const mcpAuthentication = { issuer, audiences: [url], provider: { keycloak: {} }, resourceMetadata }
      return { targets, policies: { mcpAuthentication } }
    })
    const working: Client[] = []
    for (const client of clients) if (await arrives(client, mcpUrl)) working.push(client)
    expect(working).toEqual(clients)
  })
})

describe('a client that is registered beforehand', () => {
  it.each(generations)('%s gets its token from the provider itself', async (generation) => {
    const { url } = await idpAEndpoint('provider', { sendsIss: true }, undefined)
    const client = await authorizeAndConnect(generation, url, createOAuthMemory('registered-beforehand'))
    expect(await client.call('whoami')).toBe('files')
  })
})
