import { beforeAll, describe, expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { freePorts } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { connectClient } from '../support/mcp-clients.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { anthropicKey, type MockAnthropic, mockAnthropic } from '../support/mock-anthropic.ts'
import type { MockServer } from '../support/mock-server.ts'
import { echoServer, readToEnd, tcpConnect } from '../support/tcp-servers.ts'
import { createTokenIssuer } from '../support/token-issuer.ts'
import { certificateFiles, namedUpstream } from '../support/traffic.ts'

const cors = {
  allowOrigins: ['*'],
  allowHeaders: ['mcp-protocol-version', 'content-type', 'cache-control'],
  exposeHeaders: ['Mcp-Session-Id'],
}

let upstream: MockServer & { host: string }
let anthropic: MockAnthropic

beforeAll(async () => {
  upstream = await namedUpstream('up', 'file')
  anthropic = await mockAnthropic({ lifetime: 'file' })
})

describe('a file in the older form', () => {
  it('joins MCP servers, with rules and tokens of one of its paths only', async () => {
    const [port = 0] = await freePorts(1)
    const issuer = await createTokenIssuer('http://issuer.test', `http://localhost:${port}/guarded/mcp`)
    await startGateway({
      binds: [
        {
          port,
          listeners: [
            {
              routes: [
                {
                  policies: { cors },
                  matches: [{ path: { exact: '/mcp' } }],
                  backends: [{ mcp: { targets: [programTarget('time'), programTarget('everything')] } }],
                },
                {
                  matches: [
                    { path: { exact: '/guarded/mcp' } },
                    { path: { exact: '/.well-known/oauth-protected-resource/guarded/mcp' } },
                    { path: { exact: '/.well-known/oauth-authorization-server/guarded/mcp' } },
                  ],
                  policies: {
                    cors,
                    mcpAuthentication: {
                      mode: 'strict',
                      issuer: issuer.issuer,
                      audiences: [`http://localhost:${port}/guarded/mcp`],
                      jwks: { inline: issuer.keys },
                      resourceMetadata: {
                        resource: `http://localhost:${port}/guarded/mcp`,
                        scopesSupported: ['read:all'],
                        bearerMethodsSupported: ['header', 'body', 'query'],
                      },
                    },
                    mcpAuthorization: { rules: ['mcp.tool.name == "whoami"', 'jwt.sub == "root"'] },
                  },
                  backends: [{ mcp: { targets: [programTarget('only')] } }],
                },
              ],
            },
          ],
        },
      ],
    })
    const url = `http://localhost:${port}`
    const open = await connectClient('SDK 1', `${url}/mcp`)
    expect((await open.tools()).filter((name) => name.endsWith('_whoami')).sort()).toEqual([
      'everything_whoami',
      'time_whoami',
    ])
    const preflight = await call(port, '/mcp', {
      method: 'OPTIONS',
      headers: { origin: 'https://inspector.test', 'access-control-request-method': 'POST' },
    })
    expect(preflight.headers['access-control-allow-origin']).toBe('*')

    const stranger = await call(port, '/guarded/mcp', { method: 'POST', host: `localhost:${port}` })
    expect(stranger.status).toBe(401)
    expect(stranger.headers['www-authenticate']).toContain(
      `resource_metadata="http://localhost:${port}/.well-known/oauth-protected-resource/guarded/mcp"`,
    )
    const metadata = await call(port, '/.well-known/oauth-protected-resource/guarded/mcp')
    expect(JSON.parse(metadata.text)).toMatchObject({
      resource: `http://localhost:${port}/guarded/mcp`,
      scopes_supported: ['read:all'],
    })
    const headers = { authorization: `Bearer ${await issuer.token({ sub: 'ann' })}` }
    const guarded = await connectClient('SDK 2', `${url}/guarded/mcp`, { headers })
    expect(await guarded.tools()).toEqual(['whoami'])
  })

  it('serves models with a separate key, and plain HTTP with the features of routes', async () => {
    const [models = 0, plain = 0, secure = 0, tcp = 0] = await freePorts(4)
    const { cert, key } = certificateFiles(createAuthority().issue('a.example.com'))
    const echo = await echoServer()
    const gateway = await startGateway(
      {
        binds: [
          {
            port: models,
            listeners: [
              {
                name: 'anthropic',
                routes: [
                  {
                    policies: {
                      ai: {
                        routes: {
                          '/v1/messages': 'messages',
                          '/v1/messages/count_tokens': 'anthropicTokenCount',
                        },
                      },
                      localRateLimit: [
                        { maxTokens: 1000, tokensPerFill: 10, fillInterval: '60s', type: 'tokens' },
                      ],
                    },
                    backends: [
                      {
                        ai: {
                          name: 'anthropic',
                          provider: { anthropic: {} },
                          hostOverride: `127.0.0.1:${anthropic.port}`,
                          policies: { backendAuth: { key: '$ANTHROPIC_API_KEY' } },
                        },
                      },
                    ],
                  },
                ],
              },
            ],
          },
          {
            port: plain,
            listeners: [
              {
                name: 'web',
                protocol: 'HTTP',
                hostname: '*.example.com',
                policies: { authorization: { rules: [{ deny: 'request.method == "DELETE"' }] } },
                routes: [
                  {
                    name: 'shop',
                    hostnames: ['shop.example.com'],
                    matches: [
                      {
                        path: { pathPrefix: '/shop' },
                        headers: [{ name: 'x-version', value: { exact: 'two' } }],
                        method: 'GET',
                      },
                    ],
                    policies: {
                      urlRewrite: { path: { prefix: '/' } },
                      requestHeaderModifier: { add: { 'x-added': 'yes' } },
                      responseHeaderModifier: { set: { 'x-answered': 'by bind' } },
                      timeout: { requestTimeout: '2s' },
                      retry: { attempts: 2, codes: [503] },
                    },
                    backends: [{ host: upstream.host, weight: 1 }],
                  },
                  {
                    name: 'rest',
                    policies: { directResponse: { status: 404, body: 'no such shop' } },
                  },
                ],
              },
            ],
          },
          {
            port: secure,
            listeners: [
              {
                name: 'tls',
                protocol: 'HTTPS',
                hostname: 'a.example.com',
                tls: { cert, key },
                routes: [{ backends: [{ backend: '/named' }] }],
              },
            ],
          },
          {
            port: tcp,
            listeners: [
              { name: 'tcp', protocol: 'TCP', tcpRoutes: [{ name: 'db', backends: [{ host: echo.host }] }] },
            ],
          },
        ],
        backends: [{ name: 'named', host: upstream.host }],
      },
      { env: { ANTHROPIC_API_KEY: anthropicKey } },
    )

    const asked = { model: 'claude-test', max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] }
    const headers = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
    const message = await call(models, '/v1/messages', {
      method: 'POST',
      headers,
      body: JSON.stringify(asked),
    })
    expect(JSON.parse(message.text)).toMatchObject({ type: 'message' })

    const shop = { host: 'shop.example.com', headers: { 'x-version': 'two' } }
    expect(await call(plain, '/shop/item', shop)).toMatchObject({
      text: 'up',
      headers: { 'x-answered': 'by bind' },
    })
    expect(upstream.seen.at(-1)).toMatchObject({ path: '/item', headers: { 'x-added': 'yes' } })
    expect((await call(plain, '/shop/item', { host: 'shop.example.com' })).text).toBe('no such shop')
    expect((await call(plain, '/', { host: 'other.test' })).status).toBe(404)
    expect((await call(plain, '/shop/item', { ...shop, method: 'DELETE' })).status).toBe(403)

    const tls = { ca: '', name: 'a.example.com' }
    await expect(call(secure, '/', { tls, host: 'a.example.com' })).rejects.toThrow(/certificate/)

    const socket = await tcpConnect(tcp)
    socket.end('through')
    expect(await readToEnd(socket)).toBe('through')
    expect((await gateway.status()).synchronized).toBe(true)
  })
})
