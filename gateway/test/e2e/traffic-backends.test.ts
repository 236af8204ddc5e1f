import { writeFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { call } from '../support/http-call.ts'
import { listening } from '../support/listening.ts'
import { connectClient } from '../support/mcp-clients.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { anthropicKey, type MockAnthropic, mockAnthropic } from '../support/mock-anthropic.ts'
import { type MockOpenAi, mockOpenAi, openAiErrors, openAiKey } from '../support/mock-openai.ts'
import { readStream } from '../support/sse.ts'
import { certificateFiles, namedUpstream, type Routing, routing, routingConfig } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const at = (path: string) => ({ matches: [{ path: { pathPrefix: path } }] })
const json = { 'content-type': 'application/json' }

function ask(port: number, path: string, body: object, headers: Record<string, string> = {}) {
  const sent = { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) }
  return call(port, path, sent)
}

const hello = { model: 'gpt-test', messages: [{ role: 'user', content: 'hello' }] }

describe('an ai backend', () => {
  let openai: MockOpenAi
  let anthropic: MockAnthropic
  let running: Routing

  beforeAll(async () => {
    openai = await mockOpenAi({ lifetime: 'file' })
    anthropic = await mockAnthropic({ lifetime: 'file' })
    const gpt = {
      name: 'gpt',
      provider: { openAI: {} },
      hostOverride: `127.0.0.1:${openai.port}`,
      policies: { backendAuth: { key: openAiKey } },
    }
    const claude = {
      name: 'claude',
      provider: { anthropic: { model: 'claude-test' } },
      hostOverride: `127.0.0.1:${anthropic.port}`,
      policies: { backendAuth: { key: anthropicKey } },
    }
    running = await routing(
      [
        { name: 'plain', ...at('/plain'), backends: [{ ai: gpt }] },
        {
          name: 'typed',
          ...at('/typed'),
          policies: {
            ai: {
              routes: {
                '/v1/messages': 'messages',
                '/v1/embeddings': 'embeddings',
                '/v1/chat/completions': 'completions',
              },
              defaults: { temperature: 0.5 },
              overrides: { top_p: 0.25 },
              modelAliases: { fast: 'gpt-test' },
            },
            apiKey: { keys: [{ key: 'tg-ai-1', metadata: { name: 'ann' } }] },
            authorization: { rules: [{ deny: 'llmRequest.model == "forbidden"' }] },
            localRateLimit: [{ tokens: 100, unit: 'Hours' }],
          },
          backends: [{ backend: '/models' }],
        },
        {
          name: 'groups',
          ...at('/groups'),
          backends: [{ ai: { groups: [{ providers: [gpt] }, { providers: [claude] }] } }],
        },
        { name: 'echo', ...at('/echo'), backends: [{ ai: { name: 'e', provider: { echo: {} } } }] },
      ],
      { backends: [{ name: 'models', ai: gpt }] },
      { lifetime: 'file' },
    )
  })

  it('treats every path as a chat completion by default', async () => {
    const answer = await ask(running.port, '/plain/whatever', hello)
    expect(JSON.parse(answer.text)).toMatchObject({ object: 'chat.completion', usage: { total_tokens: 30 } })
    expect(openai.seen.at(-1)).toMatchObject({
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${openAiKey}` },
    })
    expect((await ask(running.port, '/plain', { model: 1 })).status).toBe(400)
  })

  it('streams as the provider does', async () => {
    const response = await fetch(`http://127.0.0.1:${running.port}/plain`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ ...hello, stream: true }),
    })
    expect(response.headers.get('content-type')).toMatch(/event-stream/)
    expect(JSON.stringify(await readStream(response))).toContain('[DONE]')
  })

  it('calls the operation of the path, with the fields and names of its policies', async () => {
    const headers = { authorization: 'Bearer tg-ai-1' }
    expect((await ask(running.port, '/typed/v1/chat/completions', hello)).status).toBe(401)
    expect(
      (await ask(running.port, '/typed/v1/chat/completions', { ...hello, model: 'forbidden' }, headers))
        .status,
    ).toBe(403)
    const chat = await ask(running.port, '/typed/v1/chat/completions', { ...hello, model: 'fast' }, headers)
    expect(chat.status).toBe(200)
    expect(openai.seen.at(-1)?.json).toMatchObject({ model: 'gpt-test', temperature: 0.5, top_p: 0.25 })
    const embeddings = await ask(
      running.port,
      '/typed/v1/embeddings',
      { model: 'gpt-test', input: 'x' },
      headers,
    )
    expect(JSON.parse(embeddings.text)).toMatchObject({ object: 'list' })
    const messages = await ask(running.port, '/typed/v1/messages', { ...hello, max_tokens: 20 }, headers)
    expect(JSON.parse(messages.text)).toMatchObject({ type: 'message', role: 'assistant' })
    expect(openai.seen.at(-1)?.path).toBe('/v1/chat/completions')
    await until('the tokens are used up', async () => {
      const { status, text } = await ask(running.port, '/typed/v1/chat/completions', hello, headers)
      return status === 429 && text === 'rate limit exceeded'
    })
  })

  it('falls back on the next group when one fails', async () => {
    expect(JSON.parse((await ask(running.port, '/groups', hello)).text)).toMatchObject({
      model: expect.stringMatching(/gpt/),
    })
    openai.next(openAiErrors.failed)
    const answer = await ask(running.port, '/groups', hello)
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toMatchObject({ object: 'chat.completion' })
    expect(anthropic.seen.at(-1)).toMatchObject({
      json: { model: 'claude-test' },
      headers: { 'x-api-key': anthropicKey },
    })
  })

  it('may be the built-in echo', async () => {
    const answer = await ask(running.port, '/echo', hello)
    expect(JSON.parse(answer.text)).toMatchObject({
      choices: [{ message: { content: expect.stringContaining('hello') } }],
    })
  })
})

describe('an mcp backend', () => {
  it('is an endpoint at the path of its route, behind the policies of its gateway', async () => {
    const { gateway, port } = await routing(
      [
        {
          name: 'tools',
          matches: [{ path: { exact: '/team/mcp' } }],
          policies: { mcpAuthorization: { rules: ['mcp.tool.name == "whoami"'] } },
          backends: [{ mcp: { targets: [programTarget('one')] } }],
        },
        { name: 'named', ...at('/named'), backends: [{ backend: '/both' }] },
      ],
      {
        gateway: { apiKey: { keys: [{ key: 'tg-mcp-1' }] } },
        backends: [{ name: 'both', mcp: { targets: [programTarget('one'), programTarget('two')] } }],
      },
    )
    const url = `http://127.0.0.1:${port}`
    const headers = { authorization: 'Bearer tg-mcp-1' }
    await expect(connectClient('SDK 1', `${url}/team/mcp`)).rejects.toThrow()
    const client = await connectClient('SDK 1', `${url}/team/mcp`, { headers })
    expect(await client.tools()).toEqual(['whoami'])
    expect(await client.call('whoami')).toContain('one')
    await expect(client.call('pid')).rejects.toThrow()
    const both = await connectClient('SDK 2', `${url}/named`, { headers })
    expect((await both.tools()).filter((name) => name.endsWith('_whoami')).sort()).toEqual([
      'one_whoami',
      'two_whoami',
    ])
    expect((await gateway.logged(2)).map(({ route }) => route)).toContain('tools')
  })
})

describe('one address for everything', () => {
  it('gives routes their matches, and llm and mcp their paths, behind the policies of the gateway', async () => {
    const { port } = await routing(
      [{ name: 'app', ...at('/app'), policies: { directResponse: { status: 200, body: 'app' } } }],
      {
        gateway: { apiKey: { keys: [{ key: 'tg-all-1' }] } },
        // Without ports of their own they attach to the gateway named default.
        llm: { port: undefined, models: [{ name: 'echo', provider: 'echo' }] },
        mcp: { port: undefined, targets: [programTarget('one')] },
      },
    )
    const headers = { authorization: 'Bearer tg-all-1' }
    expect((await call(port, '/app')).status).toBe(401)
    expect((await ask(port, '/v1/chat/completions', { ...hello, model: 'echo' })).status).toBe(401)
    expect((await call(port, '/app', { headers })).text).toBe('app')
    const chat = await ask(port, '/v1/chat/completions', { ...hello, model: 'echo' }, headers)
    expect(JSON.parse(chat.text)).toMatchObject({ object: 'chat.completion' })
    const client = await connectClient('SDK 1', `http://127.0.0.1:${port}/mcp`, { headers })
    expect(await client.call('whoami')).toContain('one')
    expect((await call(port, '/nothing', { headers })).status).toBe(404)
  })
})

describe('a backend with TLS', () => {
  let authority: Authority
  let host = ''
  let http2Host = ''
  const seen: { name: string | false | undefined; client: string | undefined; auth: string | undefined }[] =
    []

  beforeAll(async () => {
    authority = createAuthority()
    const server = createTlsServer(
      { ...authority.issue('up.internal'), ca: authority.cert, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        const socket = request.socket
        const certificate = 'getPeerCertificate' in socket ? Object(socket).getPeerCertificate() : {}
        seen.push({
          name: Object(socket).servername,
          client: certificate.subject?.CN,
          auth: request.headers.authorization,
        })
        response.end('secret')
      },
    )
    host = `127.0.0.1:${await listening(server)}`
    const groups = { ecdhCurve: 'P-384' }
    const http2 = createSecureServer(
      { ...authority.issue('up.internal'), ...groups },
      (request, response) => {
        response.end(`HTTP/${request.httpVersion}`)
      },
    )
    http2Host = `127.0.0.1:${await listening(http2)}`
    endAfter('file', () => {
      server.closeAllConnections()
      server.close()
      http2.close()
    })
  })

  it('is asked when its certificate is right, and only then', async () => {
    const trusted = certificateFiles(authority)
    const other = certificateFiles(createAuthority())
    const client = certificateFiles(authority.issue('gateway.internal'))
    const way = (path: string, backendTLS: object, policies: object = {}) => ({
      ...at(path),
      policies: { backendTLS },
      backends: [{ host, policies }],
    })
    const toHttp2 = (path: string, settings: object) => ({
      ...at(path),
      backends: [
        {
          host: http2Host,
          policies: { backendTLS: { root: trusted.cert, hostname: 'up.internal', ...settings } },
        },
      ],
    })
    const { port } = await routing([
      way('/right', { root: trusted.cert, hostname: 'up.internal' }),
      way('/client', { root: trusted.cert, hostname: 'up.internal', cert: client.cert, key: client.key }),
      way('/name', { root: trusted.cert, hostname: 'other.internal' }),
      way('/no-name', { root: trusted.cert }),
      way('/any-name', { root: trusted.cert, insecureHost: true }),
      way('/names', { root: trusted.cert, hostname: 'asked.internal', subjectAltNames: ['up.internal'] }),
      way('/authority', { root: other.cert, hostname: 'up.internal' }),
      way('/system', { hostname: 'up.internal' }),
      way('/anything', { insecure: true }),
      { ...at('/plain'), backends: [{ host }] },
      way('/both', { insecure: true, alpn: ['h2', 'http/1.1'] }),
      way('/first', { insecure: true, alpn: ['h2'] }, { http: { version: 'HTTP/1.1' } }),
      toHttp2('/alpn', { alpn: ['h2'], keyExchangeGroups: ['P-384'] }),
      toHttp2('/groups', { alpn: ['h2'], keyExchangeGroups: ['X25519', 'X25519_MLKEM768'] }),
      {
        ...at('/h2'),
        backends: [
          {
            host: http2Host,
            policies: {
              http: { version: 'HTTP/2' },
              backendTLS: { root: trusted.cert, hostname: 'up.internal' },
            },
          },
        ],
      },
    ])
    const statuses: Record<string, number> = {}
    const paths = ['/right', '/client', '/name', '/no-name', '/any-name', '/names', '/authority', '/system']
    for (const path of [...paths, '/anything', '/plain', '/both', '/first', '/groups'])
      statuses[path] = (await call(port, path)).status
    expect(statuses).toEqual({
      '/right': 200,
      '/client': 200,
      '/name': 503,
      '/no-name': 503,
      '/any-name': 200,
      '/names': 200,
      '/authority': 503,
      '/system': 503,
      '/anything': 200,
      '/plain': 502,
      '/both': 200,
      '/first': 200,
      '/groups': 503,
    })
    expect(seen[0]).toMatchObject({ name: 'up.internal', client: undefined })
    expect(seen[1]).toMatchObject({ client: 'gateway.internal' })
    for (const path of ['/h2', '/alpn']) expect((await call(port, path)).text).toBe('HTTP/2.0')
    for (const path of ['/name', '/authority']) {
      const { text } = await call(port, path)
      expect(text).not.toMatch(/certificate|self|altname/i)
    }
  })

  it('is verified by the authorities currently in its file', async () => {
    const root = certificateFiles(createAuthority())
    const route = {
      backends: [{ host, policies: { backendTLS: { root: root.cert, hostname: 'up.internal' } } }],
    }
    const { port } = await routing([route])
    expect((await call(port, '/')).status).toBe(503)
    writeFileSync(root.cert, authority.cert)
    await until('the new authority is trusted', async () => (await call(port, '/')).status === 200)
  })
})

describe('backendAuth', () => {
  it('sends the credential of the gateway, or passes on the one that was checked', async () => {
    const upstream = await namedUpstream('up')
    const way = (path: string, backendAuth: object, policies: object = {}) => ({
      ...at(path),
      policies: { backendAuth, ...policies },
      backends: [{ host: upstream.host }],
    })
    const apiKey = { keys: [{ key: 'tg-client-1' }] }
    const routes = [
      way('/key', { key: 'upstream-key' }, { apiKey }),
      way('/header', { key: 'upstream-key', location: { header: { name: 'x-api-key', prefix: 'Key ' } } }),
      way('/pass', { passthrough: {} }, { apiKey }),
      { ...at('/none'), policies: { apiKey }, backends: [{ host: upstream.host }] },
    ]
    const { gateway, port } = await routing(routes)
    const headersAt = async (path: string) => {
      const headers = { authorization: 'Bearer tg-client-1', 'x-api-key': 'mine' }
      expect((await call(port, path, { headers })).status).toBe(200)
      return upstream.seen.at(-1)?.headers ?? {}
    }
    expect(await headersAt('/key')).toMatchObject({ authorization: 'Bearer upstream-key' })
    expect(await headersAt('/header')).toMatchObject({ 'x-api-key': 'Key upstream-key' })
    expect(await headersAt('/pass')).toMatchObject({ authorization: 'Bearer tg-client-1' })
    expect((await headersAt('/none')).authorization).toBeUndefined()
    await gateway.reload(
      routingConfig(port, [way('/key', { key: 'another-key' }, { apiKey }), ...routes.slice(1)]),
    )
    expect(await headersAt('/key')).toMatchObject({ authorization: 'Bearer another-key' })
    expect(gateway.stdout()).not.toMatch(/upstream-key|another-key|tg-client-1/)
  })
})
