import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { createBrowser } from '../support/mcp-browser.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { startOidcProvider } from '../support/mcp-oidc-provider.mjs'
import { openSession, post, type RawSession } from '../support/mcp-raw.ts'
import { type MockServer, member, sendJson, startMockServer } from '../support/mock-server.ts'
import { createTokenIssuer, type TokenIssuer } from '../support/token-issuer.ts'

/** Logins of users at targets that require OAuth, against a real OpenID provider. */

const revoked = new Set<string>()
const sessionKey = '5e'.repeat(32)

/** An MCP server with one tool that accepts tokens of the issuer. */
function startProtectedServer(issuer: () => string): Promise<MockServer> {
  return startMockServer(({ method, path, json, headers }, response) => {
    const origin = `http://${headers.host}`
    if (path === '/about') {
      const body = { resource: `${origin}/mcp`, authorization_servers: [issuer()], scopes_supported: ['mcp'] }
      sendJson(response, { status: 200, body })
      return
    }
    const token = headers.authorization?.slice('Bearer '.length)
    if (token === undefined || revoked.has(token)) {
      const challenge = `Bearer error="invalid_token", resource_metadata="${origin}/about"`
      response.writeHead(401, { 'www-authenticate': challenge }).end(`no token for ${path}`)
      return
    }
    const id = member(json, 'id')
    if (member(json, 'params', 'name') === 'quote') {
      response.writeHead(403, { 'content-type': 'text/plain' }).end(`${token} has no permission`)
      return
    }
    if (method !== 'POST') response.writeHead(method === 'GET' ? 405 : 200).end()
    else if (id === undefined) response.writeHead(202).end()
    else sendJson(response, { status: 200, body: { jsonrpc: '2.0', id, result: resultOf(json) } })
  }, 'file')
}

function resultOf(json: unknown): object {
  switch (member(json, 'method')) {
    case 'initialize':
      return {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'protected', version: '1' },
      }
    case 'tools/list':
      return { tools: [{ name: 'read', inputSchema: { type: 'object' } }] }
    default:
      return { content: [{ type: 'text', text: 'read' }] }
  }
}

describe('the login of a user at a target', () => {
  let users: TokenIssuer
  let server: MockServer
  let gateway: Gateway
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-logins-'))

  const start = () =>
    startMcpGateway(
      (url) => ({
        policies: { jwtAuth: { issuer: users.issuer, audiences: ['tools'], jwks: users.keys } },
        targets: [
          {
            name: 'tickets',
            mcp: { host: `${server.url}/mcp` },
            policies: { oauth: { publicUrl: url, folder } },
          },
          programTarget('files'),
        ],
      }),
      {
        config: { workerThreads: 2, session: { key: sessionKey } },
        lifetime: 'file',
      },
    )

  beforeAll(async () => {
    users = await createTokenIssuer('https://users.test', 'tools')
    let issuer = ''
    server = await startProtectedServer(() => issuer)
    const provider = await startOidcProvider({
      ...{ resource: `${server.url}/mcp`, claims: {}, tokenExpiresInSeconds: () => 300 },
    })
    issuer = provider.issuer
    endAfter('file', async () => {
      await provider.close()
      rmSync(folder, { recursive: true, force: true })
    })
    gateway = await start()
  })

  const as = async (sub: string) => ({ authorization: `Bearer ${await users.token({ sub })}` })
  const callTool = (session: RawSession, name: string) =>
    session.send({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name, arguments: {} } })
  const toolsOf = async (session: RawSession) => {
    const { tools } = await session.request('tools/list')
    return Array.isArray(tools) ? tools.map((tool) => member(tool, 'name')) : []
  }

  async function linkOf(session: RawSession): Promise<string> {
    const { messages } = await callTool(session, 'tickets_read')
    expect(messages.at(-1)).toMatchObject({
      error: { code: -32042, data: { elicitations: [{ mode: 'url' }] } },
    })
    return String(member(messages.at(-1), 'error', 'data', 'elicitations', '0', 'url'))
  }

  /** Signs in; returns the address of the callback, which was requested, and its status. */
  async function signIn(link: string) {
    const browser = createBrowser({ redirectUri: `${gateway.mcpUrl}/oauth/callback` })
    const page = await (await browser.request(link)).text()
    const text = /name="link" value="([^"]+)"/.exec(page)?.[1] ?? ''
    const action = new URL(/action="([^"]+)"/.exec(page)?.[1] ?? '', link)
    const begun = await browser.request(action, { method: 'POST', body: new URLSearchParams({ link: text }) })
    const callback = await browser.browse(new URL(begun.headers.get('location') ?? ''))
    const stranger = await fetch(callback)
    const done = await browser.request(callback)
    const again = await browser.request(callback)
    return { page, statuses: [begun.status, stranger.status, done.status, again.status] }
  }

  it('begins with a link, and gives calls the token of their user', async () => {
    const session = await openSession(gateway.mcpUrl, await as('ada'))
    const files = (await toolsOf(session)).filter((name) => String(name).startsWith('files_'))
    expect(await toolsOf(session)).toEqual(['tickets_sign_in', ...files])
    const link = await linkOf(session)
    const { messages } = await callTool(session, 'tickets_sign_in')
    expect(member(messages.at(-1), 'result', 'content', '0', 'text')).toContain('/mcp/oauth/start?link=')
    const { page, statuses } = await signIn(link)
    expect(page).toContain('ada')
    expect(statuses).toEqual([303, 403, 200, 400])

    const signedIn = await callTool(session, 'tickets_sign_in')
    expect(signedIn.messages.map((message) => message['method'])).toEqual([
      'notifications/tools/list_changed',
      undefined,
    ])
    expect(await toolsOf(session)).toEqual(['tickets_read', ...files])
    expect((await callTool(session, 'tickets_read')).messages.at(-1)).toHaveProperty('result')
    expect(await linkOf(await openSession(gateway.mcpUrl, await as('bob')))).toContain('link=')
  })

  it('does not show the token in errors that quote it', async () => {
    const session = await openSession(gateway.mcpUrl, await as('ada'))
    const { messages } = await callTool(session, 'tickets_quote')
    expect(JSON.stringify(messages)).toContain('[hidden] has no permission')
    expect(JSON.stringify(messages) + gateway.stdout()).not.toContain(lastToken())
  })

  it('is renewed once for concurrent calls after the target refuses its token', async () => {
    const session = await openSession(gateway.mcpUrl, await as('ada'))
    revoked.add(lastToken())
    const before = server.seen.length
    const answers = await Promise.all([1, 2, 3].map(() => callTool(session, 'tickets_read')))
    for (const { messages } of answers) expect(messages.at(-1)).toHaveProperty('result')
    const tokens = server.seen.slice(before).map(({ headers }) => String(headers.authorization).slice(7))
    expect(new Set(tokens.filter((token) => !revoked.has(token))).size).toBe(1)
  })

  it('has one session at the target for the HTTP+SSE transport, on all threads', async () => {
    const headers = await as('ada')
    // A connection for each message, and so any of the threads.
    const fetchOnce: typeof fetch = (input, init) =>
      fetch(input, {
        ...init,
        headers: { ...Object.fromEntries(new Headers(init?.headers)), ...headers, connection: 'close' },
      })
    const client = new Client({ name: 'test', version: '1' })
    endAfter('test', () => client.close())
    const before = server.seen.length
    await client.connect(new SSEClientTransport(new URL('/sse', gateway.mcpUrl), { fetch: fetchOnce }))
    for (let round = 0; round < 12; round += 1) {
      const { content } = await client.callTool({ name: 'tickets_read', arguments: {} })
      expect(content).toEqual([{ type: 'text', text: 'read' }])
    }
    const begun = server.seen.slice(before).filter(({ json }) => member(json, 'method') === 'initialize')
    expect(begun.map(({ json }) => member(json, 'params', 'clientInfo', 'name'))).toEqual(['test'])
  })

  it('survives a restart, encrypted', async () => {
    const token = lastToken()
    await gateway.stop()
    const output = gateway.stdout()
    gateway = await startGateway({}, { again: gateway, lifetime: 'file' })
    const session = await openSession(gateway.mcpUrl, await as('ada'))
    expect((await callTool(session, 'tickets_read')).messages.at(-1)).toHaveProperty('result')
    expect(lastToken()).toBe(token)
    const stored = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
    expect(stored.length).toBeGreaterThan(1)
    for (const text of [...stored, output, gateway.stdout(), await gateway.metrics()])
      expect(text).not.toContain(token)
  })

  it('requires a link of the gateway', async () => {
    const url = `${gateway.mcpUrl}/oauth`
    const statuses = await Promise.all(
      [`${url}/start?link=forged`, `${url}/callback?state=forged&code=x`, `${url}/callback`].map(
        async (address) => (await fetch(address)).status,
      ),
    )
    expect(statuses).toEqual([400, 400, 400])
    const foreign = await fetch(`${url}/start`, {
      ...{
        method: 'POST',
        body: new URLSearchParams({ link: 'x' }),
        headers: { origin: 'https://evil.test' },
      },
    })
    expect(foreign.status).toBe(403)
    expect((await post(gateway.mcpUrl, { jsonrpc: '2.0', id: 1, method: 'ping' })).status).toBe(401)
  })

  function lastToken(): string {
    const tokens = server.seen.flatMap(({ headers }) => headers.authorization ?? [])
    return tokens.at(-1)?.slice(7) ?? ''
  }
})
