import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type Answered, call } from '../support/http-call.ts'
import { readConsentForm } from '../support/mcp-browser.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import {
  type IdentityProvider,
  type ProviderShape,
  startIdentityProvider,
} from '../support/mcp-identity-provider.ts'
import { member } from '../support/mock-server.ts'

// Each request is on a connection of its own, so that requests reach different worker threads.

const workers = { config: { workerThreads: 4 } }
const keysPath = '/keys'
const tokenPath = '/token'

/** A standards-compliant provider that sends `iss` with every code. */
const shape: ProviderShape = {
  issuerPath: '/main',
  keysPath,
  metadataPath: '/main/.well-known/openid-configuration',
  insertedMetadataPath: '/.well-known/oauth-authorization-server/main',
  tokenPath,
  authorizePath: '/authorize',
  metadata: () => ({}),
  audience: ({ resource }) => resource ?? '',
  claims: () => ({ roles: ['reader'] }),
  refuse: () => undefined,
}

function requestsOf(provider: IdentityProvider, path: string): number {
  return provider.seen.filter((request) => request.path.split('?', 1)[0] === path).length
}

/** Answers to parallel requests. */
function burst(ask: () => Promise<Answered>, count = 64): Promise<Answered[]> {
  return Promise.all(Array.from({ length: count }, ask))
}

function statusesOf(answers: readonly Answered[]): number[] {
  return [...new Set(answers.map(({ status }) => status))]
}

describe('keys of an identity provider', () => {
  async function startRoute(): Promise<{
    provider: IdentityProvider
    ask(token: string): Promise<Answered>
  }> {
    const provider = await startIdentityProvider(shape)
    const jwks = { url: new URL(keysPath, provider.issuer).href }
    const port = await freePort()
    await startGateway({
      ...workers,
      gateways: { open: { port } },
      routes: [
        {
          gateways: ['open'],
          policies: {
            jwtAuth: { issuer: provider.issuer, audiences: ['app'], jwks },
            directResponse: { status: 200, body: 'admitted' },
          },
        },
      ],
    })
    const ask = (token: string) => call(port, '/', { headers: { authorization: `Bearer ${token}` } })
    return { provider, ask }
  }

  it('are fetched once, and once more after a rotation', async () => {
    const { provider, ask } = await startRoute()
    const token = await provider.sign({ aud: 'app' })
    expect(statusesOf(await burst(() => ask(token)))).toEqual([200])
    expect(requestsOf(provider, keysPath)).toBe(1)
    await provider.rotateKeys()
    const next = await provider.sign({ aud: 'app' })
    expect(statusesOf(await burst(() => ask(next)))).toEqual([200])
    expect(requestsOf(provider, keysPath)).toBe(2)
    // All workers use the new keys.
    expect(statusesOf(await burst(() => ask(token)))).toEqual([401])
  })

  it('are fetched within one limit for tokens with unknown key ids', async () => {
    const { provider, ask } = await startRoute()
    const startedAt = performance.now()
    let forged = 0
    const answers = await burst(async () => {
      forged += 1
      return ask(await provider.sign({ aud: 'app' }, { kid: `forged ${forged}` }))
    })
    expect(statusesOf(answers)).toEqual([401])
    // A burst of 5, then one in 10 s.
    const fetches = requestsOf(provider, keysPath) - 1
    expect(fetches).toBeGreaterThan(0)
    expect(fetches).toBeLessThanOrEqual(5 + Math.floor((performance.now() - startedAt) / 10_000))
  })

  it('are fetched with the pauses of one process while the provider fails', async () => {
    const { provider, ask } = await startRoute()
    const token = await provider.sign({ aud: 'app' })
    provider.failWith(500)
    const startedAt = performance.now()
    for (let round = 0; round < 4; round += 1) {
      const answers = await burst(() => ask(token), 32)
      expect(answers.every(({ status }) => status !== 200)).toBe(true)
    }
    // The second fetch is at least 1 s later, the third 3 s, and so on.
    const elapsedMs = performance.now() - startedAt
    const due = [0, 1_000, 3_000, 7_000, 15_000, 30_000].filter((atMs) => atMs <= elapsedMs).length
    expect(requestsOf(provider, keysPath)).toBeGreaterThan(0)
    expect(requestsOf(provider, keysPath)).toBeLessThanOrEqual(due)
  })
})

describe('a login at the gateway as authorization server', () => {
  const redirectUri = 'http://127.0.0.1:9/callback'
  const endpoints = '/.well-known/oauth-authorization-server/mcp'
  const verifier = 'v'.repeat(43)

  async function startEndpoint(): Promise<{ gateway: Gateway; provider: IdentityProvider }> {
    let provider: IdentityProvider | undefined
    const gateway = await startMcpGateway(async (url) => {
      provider = await startIdentityProvider(shape, { sendsIss: true })
      const mcpAuthentication = {
        issuer: provider.issuer,
        audiences: [url],
        authorizationServers: 'front',
        clientId: 'the-gateway',
        clientSecret: 'secret',
        resourceMetadata: { resource: url, scopesSupported: ['openid'] },
      }
      return { targets: [programTarget('files')], policies: { mcpAuthentication } }
    }, workers)
    if (provider === undefined) throw new Error('no provider')
    return { gateway, provider }
  }

  function post(port: number, path: string, form: Record<string, string>, cookie = ''): Promise<Answered> {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', cookie }
    return call(port, path, { method: 'POST', headers, body: new URLSearchParams(form).toString() })
  }

  function redeem({ mcpPort }: Gateway, form: Record<string, string>): Promise<Answered> {
    return post(mcpPort, `${endpoints}/token`, form)
  }

  async function registeredId({ mcpPort }: Gateway): Promise<string> {
    const body = JSON.stringify({ redirect_uris: [redirectUri] })
    const registered = await call(mcpPort, `${endpoints}/register`, { method: 'POST', body })
    return String(member(JSON.parse(registered.text), 'client_id'))
  }

  /** The callback of a login, after consent. */
  async function callbackOf(gateway: Gateway, client: string): Promise<{ path: string; cookie: string }> {
    const { mcpPort, mcpUrl } = gateway
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: client,
      redirect_uri: redirectUri,
      state: 's',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      resource: mcpUrl,
    })
    const page = await call(mcpPort, `${endpoints}/authorize?${query}`)
    const cookie = String(page.headers['set-cookie']).split(';', 1)[0] ?? ''
    const form = readConsentForm(page.text)
    if (form === undefined) throw new Error(`no consent page: ${page.status} ${page.text}`)
    const consent = await post(
      mcpPort,
      new URL(form.action).pathname,
      { request: form.request, decision: 'allow' },
      cookie,
    )
    const login = await fetch(String(consent.headers['location']), { redirect: 'manual' })
    const { pathname, search } = new URL(login.headers.get('location') ?? '')
    return { path: pathname + search, cookie }
  }

  function codeIn({ headers }: Answered): string | undefined {
    return new URL(String(headers['location'])).searchParams.get('code') ?? undefined
  }

  /** The token request for a code of a new login. */
  async function codeRequest(gateway: Gateway): Promise<Record<string, string>> {
    const client = await registeredId(gateway)
    const { path, cookie } = await callbackOf(gateway, client)
    const code = codeIn(await call(gateway.mcpPort, path, { headers: { cookie } }))
    return {
      grant_type: 'authorization_code',
      code: code ?? '',
      client_id: client,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }
  }

  function initialize(gateway: Gateway, token: unknown): Promise<Answered> {
    return call(gateway.mcpPort, '/mcp', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
      }),
    })
  }

  it('proceeds on any worker, with metadata and keys fetched once', async () => {
    const { gateway, provider } = await startEndpoint()
    const requests = await Promise.all(Array.from({ length: 8 }, () => codeRequest(gateway)))
    const answers = await Promise.all(requests.map((form) => redeem(gateway, form)))
    expect(statusesOf(answers)).toEqual([200])
    const token = member(JSON.parse(answers[0]?.text ?? ''), 'access_token')
    expect(statusesOf(await burst(() => initialize(gateway, token), 8))).toEqual([200])
    expect(requestsOf(provider, keysPath)).toBe(1)
    expect(requestsOf(provider, '/.well-known/oauth-authorization-server/main')).toBe(1)
  })

  it('issues tokens once for a code, and revokes them after its second use', async () => {
    const { gateway, provider } = await startEndpoint()
    for (let login = 1; login <= 5; login += 1) {
      const form = await codeRequest(gateway)
      const answers = await burst(() => redeem(gateway, form), 8)
      const issued = answers.filter(({ status }) => status === 200)
      expect(issued).toHaveLength(1)
      expect(requestsOf(provider, tokenPath)).toBe(login)
      const token = member(JSON.parse(issued[0]?.text ?? ''), 'access_token')
      expect(statusesOf(await burst(() => initialize(gateway, token), 8))).toEqual([401])
    }
  })

  it('is complete once', async () => {
    const { gateway } = await startEndpoint()
    const { path, cookie } = await callbackOf(gateway, await registeredId(gateway))
    const answers = await burst(() => call(gateway.mcpPort, path, { headers: { cookie } }), 8)
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, ...Array(7).fill(400)])
  })

  it('refreshes its token once, with the same response for all requests', async () => {
    const { gateway, provider } = await startEndpoint()
    const form = await codeRequest(gateway)
    let tokens: unknown = JSON.parse((await redeem(gateway, form)).text)
    for (let generation = 1; generation <= 5; generation += 1) {
      const refresh = {
        grant_type: 'refresh_token',
        client_id: form['client_id'] ?? '',
        refresh_token: String(member(tokens, 'refresh_token')),
      }
      const answers = await burst(() => redeem(gateway, refresh), 8)
      expect(statusesOf(answers)).toEqual([200])
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
      expect(requestsOf(provider, tokenPath)).toBe(1 + generation)
      tokens = JSON.parse(answers[0]?.text ?? '')
    }
  })
})
