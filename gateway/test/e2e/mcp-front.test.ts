import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { startGateway } from '../support/gateway.ts'
import { browse, createBrowser } from '../support/mcp-browser.ts'
import { generations } from '../support/mcp-clients.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { authorizeAndConnect, createOAuthMemory, redirectUri } from '../support/mcp-oauth-client.ts'
import { startOidcProvider } from '../support/mcp-oidc-provider.mjs'
import { openSession } from '../support/mcp-raw.ts'
import { connectMcpRemote } from '../support/mcp-remote.ts'
import { strictToken } from '../support/mcp-strict-client.ts'
import { member } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

// `authorizationServers: front` with a real OpenID provider that sends `iss` with every code and has no
// registration.

const targets = [programTarget('files')]
const sessionKey = '44'.repeat(32)
const clientId = 'the-gateway'
const clientSecret = 'a secret of the gateway: 1%+'

type Endpoint = {
  url: string
  tokensExpireIn(seconds: number): void
  /** Ends the process and starts another one. */
  restart(): Promise<void>
}

async function startEndpoint(settings: Record<string, unknown> = {}): Promise<Endpoint> {
  let seconds = 300
  const env = { NODE_EXTRA_CA_CERTS: authorityFile }
  const gateway = await startMcpGateway(
    async (url) => {
      const callback = `${new URL(url).origin}/.well-known/oauth-authorization-server/mcp/callback`
      const { issuer, close } = await startOidcProvider({
        resource: url,
        claims: { roles: ['reader'] },
        registration: false,
        clients: [
          {
            client_id: clientId,
            client_secret: clientSecret,
            token_endpoint_auth_method: 'client_secret_basic',
            redirect_uris: [callback],
          },
        ],
        tokenExpiresInSeconds: () => seconds,
      })
      endAfter('test', close)
      const mcpAuthentication = {
        issuer,
        audiences: [url],
        authorizationServers: 'front',
        clientId,
        clientSecret,
        resourceMetadata: { resource: url, scopesSupported: ['openid', 'mcp'] },
        ...settings,
      }
      return { targets, policies: { mcpAuthentication, authorization: { rules: ['"reader" in jwt.roles'] } } }
    },
    { config: { session: { key: sessionKey } }, env },
  )
  let current = gateway
  return {
    url: gateway.mcpUrl,
    tokensExpireIn(next) {
      seconds = next
    },
    async restart() {
      await current.stop()
      current = await startGateway({}, { again: current, env })
    },
  }
}

describe('a gateway that fronts a provider with iss and without registration', () => {
  it.each(generations)('serves %s: registration, consent, calls, refresh', async (generation) => {
    const endpoint = await startEndpoint()
    endpoint.tokensExpireIn(5)
    const memory = createOAuthMemory()
    const client = await authorizeAndConnect(generation, endpoint.url, memory)
    expect(await client.call('whoami')).toBe('files')
    const first = memory.tokens()?.access_token
    expect(first).not.toContain('.')
    endpoint.tokensExpireIn(300)
    await until('the token is refused and replaced', async () => {
      expect(await client.call('whoami')).toBe('files')
      return memory.tokens()?.access_token !== first
    })
  })

  it('serves a strict client', async () => {
    const { url } = await startEndpoint()
    const session = await openSession(url, { authorization: `Bearer ${await strictToken(url)}` })
    expect(await session.request('tools/call', { name: 'whoami' })).toMatchObject({
      content: [{ text: 'files' }],
    })
  })

  it('serves mcp-remote', async () => {
    const { url } = await startEndpoint()
    expect((await (await connectMcpRemote(url)).listTools()).tools.length).toBeGreaterThan(0)
  })

  it('serves a client by its metadata document', async () => {
    const documentUrl = await serveClientDocument()
    const { url } = await startEndpoint({ front: { clientDocumentNetworks: ['127.0.0.1', '::1'] } })
    const token = await tokenFor(url, documentUrl)
    const session = await openSession(url, { authorization: `Bearer ${token}` })
    expect(await session.request('tools/call', { name: 'whoami' })).toMatchObject({
      content: [{ text: 'files' }],
    })
  })

  it('does not fetch a metadata document from its own network unless that is configured', async () => {
    const seen: string[] = []
    const documentUrl = await serveClientDocument(seen)
    const { url } = await startEndpoint()
    await expect(tokenFor(url, documentUrl)).rejects.toThrow('client not accepted')
    expect(seen).toEqual([])
  })

  it('goes on with codes, tokens and registrations after a restart, and redeems no code twice', async () => {
    const { url, restart } = await startEndpoint()
    const client = await registeredId(url)
    const form = await codeFor(url, client)
    await restart()
    const tokens = await redeem(url, form)
    await openSession(url, { authorization: `Bearer ${member(tokens, 'access_token')}` })
    await restart()
    // The new process has no memory of the code: the provider refuses it.
    expect(await redeem(url, form)).toMatchObject({ error: 'invalid_grant' })
    await openSession(url, { authorization: `Bearer ${member(tokens, 'access_token')}` })
    const refresh = {
      grant_type: 'refresh_token',
      client_id: client,
      refresh_token: String(member(tokens, 'refresh_token')),
    }
    // The provider revokes the tokens of a code that is used twice, so this login ends there.
    expect(await redeem(url, refresh)).toMatchObject({ error: 'invalid_grant' })
    await openSession(url, { authorization: `Bearer ${await tokenFor(url, client)}` })
  })

  it('sends the person back with the error if access is denied', async () => {
    const { url } = await startEndpoint()
    const start = await authorizationUrl(url, await registeredId(url))
    const back = await createBrowser({ redirectUri, decision: 'deny' }).browse(start)
    expect(Object.fromEntries(back.searchParams)).toMatchObject({
      error: 'access_denied',
      iss: url,
      state: 's',
    })
  })
})

const authority = createAuthority()
const verifier = 'v'.repeat(43)
let authorityFile = ''

beforeAll(() => {
  authorityFile = join(mkdtempSync(join(tmpdir(), 'tollgate-front-')), 'ca.pem')
  writeFileSync(authorityFile, authority.cert)
})

afterAll(() => rmSync(dirname(authorityFile), { recursive: true }))

/** A client ID metadata document over HTTPS on loopback; `seen` collects the paths of requests. */
async function serveClientDocument(seen: string[] = []): Promise<string> {
  const server = createServer(authority.issue('localhost'), (request, response) => {
    seen.push(request.url ?? '')
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ client_id: url, client_name: 'Document', redirect_uris: [redirectUri] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endAfter('test', () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  const address = server.address()
  const url = `https://localhost:${address !== null && typeof address === 'object' ? address.port : 0}/client.json`
  return url
}

async function registeredId(url: string): Promise<string> {
  const response = await fetch(`${endpointsOf(url)}/register`, {
    method: 'POST',
    body: JSON.stringify({ redirect_uris: [redirectUri] }),
  })
  return String(member(await response.json(), 'client_id'))
}

async function authorizationUrl(url: string, client: string): Promise<URL> {
  const start = new URL(`${endpointsOf(url)}/authorize`)
  start.search = new URLSearchParams({
    response_type: 'code',
    client_id: client,
    redirect_uri: redirectUri,
    state: 's',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    resource: url,
  }).toString()
  return start
}

/** The token request for a code of a new login. */
async function codeFor(url: string, client: string): Promise<Record<string, string>> {
  const back = await browse(await authorizationUrl(url, client), redirectUri)
  return {
    grant_type: 'authorization_code',
    code: back.searchParams.get('code') ?? '',
    client_id: client,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  }
}

async function redeem(url: string, form: Record<string, string>): Promise<unknown> {
  const response = await fetch(`${endpointsOf(url)}/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  return response.json()
}

async function tokenFor(url: string, client: string): Promise<string> {
  return String(member(await redeem(url, await codeFor(url, client)), 'access_token'))
}

function endpointsOf(url: string): string {
  return `${new URL(url).origin}/.well-known/oauth-authorization-server/mcp`
}
