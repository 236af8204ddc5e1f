import { createHash, randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Gateway } from '../support/gateway.ts'
import { createBrowser, readConsentForm } from '../support/mcp-browser.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { startIdentityProvider } from '../support/mcp-identity-provider.ts'
import { keycloakShape } from '../support/mcp-keycloak.ts'
import { initializeMessage, post } from '../support/mcp-raw.ts'
import { member } from '../support/mock-server.ts'

// Attacks on the endpoints of `authorizationServers: front`, over sockets. The cases of each check are unit
// tests in `policies/mcp-authentication/authorization-server/attacks.test.ts`.

const redirectUri = 'http://127.0.0.1:9/callback'
const sessionKey = '55'.repeat(32)
const proof = 'v'.repeat(43)

let gateway: Gateway
let other: Gateway
let endpoints = ''

beforeAll(async () => {
  gateway = await start()
  other = await start()
  endpoints = `${new URL(gateway.mcpUrl).origin}/.well-known/oauth-authorization-server/mcp`
})

function start(): Promise<Gateway> {
  return startMcpGateway(
    async (url) => {
      const { issuer } = await startIdentityProvider(keycloakShape({}), { sendsIss: true, lifetime: 'file' })
      const resourceMetadata = { resource: url, scopesSupported: ['openid'] }
      const client = { clientId: 'the-gateway', clientSecret: 'secret of the gateway' }
      const mcpAuthentication = {
        ...{ issuer, audiences: [url], provider: { keycloak: {} }, authorizationServers: 'front' },
        ...{ ...client, resourceMetadata },
      }
      return { targets: [programTarget('files')], policies: { mcpAuthentication } }
    },
    { config: { session: { key: sessionKey } }, lifetime: 'file' },
  )
}

async function register(): Promise<string> {
  const body = JSON.stringify({ client_name: 'attacker', redirect_uris: [redirectUri] })
  const response = await fetch(`${endpoints}/register`, { method: 'POST', body })
  return String(member(await response.json(), 'client_id'))
}

function authorizationUrl(client: string, changes: Record<string, string> = {}): URL {
  const url = new URL(`${endpoints}/authorize`)
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: client,
    redirect_uri: redirectUri,
    state: randomUUID(),
    code_challenge: createHash('sha256').update(proof).digest('base64url'),
    code_challenge_method: 'S256',
    resource: gateway.mcpUrl,
    ...changes,
  }).toString()
  return url
}

async function token(form: Record<string, string>): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${endpoints}/token`, { method: 'POST', body: new URLSearchParams(form) })
  return { status: response.status, body: await response.json() }
}

async function login() {
  const client = await register()
  const back = await createBrowser({ redirectUri }).browse(authorizationUrl(client))
  const form = {
    grant_type: 'authorization_code',
    code: back.searchParams.get('code') ?? '',
    client_id: client,
    redirect_uri: redirectUri,
    code_verifier: proof,
  }
  return { client, form }
}

const admits = async (url: string, value: unknown) =>
  (await post(url, initializeMessage, { authorization: `Bearer ${value}` })).status

describe('a front under attack', () => {
  it('redeems a code once among many at the same time', async () => {
    const { form } = await login()
    const answers = await Promise.all(Array.from({ length: 10 }, () => token(form)))
    expect(answers.filter(({ status }) => status === 200).length).toBe(1)
  })

  it('redeems no code with a verifier that was not the challenge', async () => {
    const { form } = await login()
    expect((await token({ ...form, code_verifier: 'w'.repeat(43) })).status).toBe(400)
    expect((await token(form)).status).toBe(200)
  })

  it('issues tokens for its own endpoint only, though another one has the same session key', async () => {
    const { form } = await login()
    const { body } = await token(form)
    const access = member(body, 'access_token')
    expect(await admits(gateway.mcpUrl, access)).toBe(200)
    expect(await admits(other.mcpUrl, access)).toBe(401)
    expect(await admits(gateway.mcpUrl, member(body, 'refresh_token'))).toBe(401)
  })

  it('binds an authorization to the browser that began it', async () => {
    const attacker = createBrowser({ redirectUri })
    const page = readConsentForm(await (await attacker.request(authorizationUrl(await register()))).text())
    const body = new URLSearchParams({ request: page?.request ?? '', decision: 'allow' })
    const victim = createBrowser({ redirectUri })
    await victim.request(authorizationUrl(await register()))
    expect((await victim.request(page?.action ?? '', { method: 'POST', body })).status).toBe(403)
    const consented = await attacker.request(page?.action ?? '', { method: 'POST', body })
    const atProvider = consented.headers.get('location') ?? ''
    const answered = (await fetch(atProvider, { redirect: 'manual' })).headers.get('location') ?? ''
    const caught = await victim.request(answered)
    expect([caught.status, caught.headers.get('location')]).toEqual([403, null])
  })

  it('sends browsers to registered addresses only', async () => {
    const client = await register()
    for (const uri of [
      'https://evil.test/',
      `${redirectUri}/../x`,
      'http://127.0.0.1:9@evil.test/callback',
    ]) {
      const response = await fetch(authorizationUrl(client, { redirect_uri: uri }), { redirect: 'manual' })
      expect([response.status, response.headers.get('location')]).toEqual([400, null])
    }
  })

  it('refuses oversized requests', async () => {
    const client = await register()
    const state = await fetch(authorizationUrl(client, { state: 'x'.repeat(6_000) }), { redirect: 'manual' })
    expect(new URL(state.headers.get('location') ?? '').searchParams.get('error')).toBe('invalid_request')
    const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'x'.repeat(100_000) })
    expect((await fetch(`${endpoints}/token`, { method: 'POST', body: form })).status).toBe(413)
  })

  it.each([
    'https://127.0.0.1/a',
    'https://localhost/a',
    'https://169.254.169.254/latest',
    'https://[::1]/a',
  ])('fetches no client document from %s', async (client) => {
    const response = await fetch(authorizationUrl(client), { redirect: 'manual' })
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
  })

  it('limits requests of one address, and serves tokens meanwhile', async () => {
    const { form } = await login()
    const { body } = await token(form)
    const statuses: number[] = []
    for (let index = 0; index < 200; index += 1) {
      statuses.push((await fetch(`${endpoints}/register`, { method: 'POST', body: '{}' })).status)
    }
    expect(statuses).toContain(429)
    expect(await admits(gateway.mcpUrl, member(body, 'access_token'))).toBe(200)
    for (const secret of ['secret of the gateway', form.code, String(member(body, 'access_token')), proof]) {
      expect(gateway.stdout()).not.toContain(secret)
    }
  })
})
