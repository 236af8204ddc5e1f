import { request as requestHttp } from 'node:http'
import { expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { type MockServer, startMockServer } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

/** Requests of the console to listeners of its own process. */

const consoleHeaders = { 'x-tollgate-console': '1' }

async function startForwarded(workerThreads: number) {
  const upstream = await startMockServer((request, response) => {
    response
      .writeHead(200, {
        'content-type': 'text/html',
        'set-cookie': 'a=b',
        'clear-site-data': '*',
        'x-seen': request.headers['x-key'] ?? '-',
      })
      .end(JSON.stringify({ headers: request.headers, length: request.text.length, path: request.path }))
  })
  const certificate = createAuthority('forward').issue('a.test')
  const [port, securePort] = [await freePort(), await freePort()]
  const gateway = await startGateway({
    config: { workerThreads },
    gateways: {
      default: { port },
      secure: {
        port: securePort,
        listeners: [
          {
            name: 'a',
            hostname: 'a.test',
            tls: { cert: { inline: certificate.cert }, key: { inline: certificate.key } },
          },
        ],
      },
    },
    routes: [
      { name: 'all', gateways: ['default', 'secure'], backends: [{ host: `127.0.0.1:${upstream.port}` }] },
    ],
    ui: {
      gateways: 'default',
      policies: { apiKey: { keys: [{ key: 'ui-key', metadata: { name: 'ada' } }] } },
    },
  })
  return { gateway, upstream, port }
}

async function forward(gateway: Gateway, path: string, options: Parameters<typeof call>[2] = {}) {
  const host = `127.0.0.1:${gateway.adminPort}`
  const headers = { ...consoleHeaders, ...options.headers }
  return call(gateway.adminPort, `/api/forward/${path}`, { ...options, host, headers })
}

/** Opens a stream that the upstream does not end; resolves after its first event. */
async function openStream(
  { port, upstream, headers }: { port: number; upstream: MockServer; headers: Record<string, string> },
  path: string,
) {
  upstream.next((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: first\n\n')
  })
  const request = requestHttp({
    host: '127.0.0.1',
    port,
    path,
    headers: { ...consoleHeaders, ...headers },
    agent: false,
  })
  request.on('error', () => {})
  const first = await new Promise<string>((resolve) => {
    request.on('response', (response) => {
      response.on('error', () => {})
      response.once('data', (chunk) => resolve(String(chunk)))
    })
    request.end()
  })
  return { first, abort: () => request.destroy() }
}

it.each([1, 2])('requests reach listeners without credentials of the console, with %d threads', async (n) => {
  const { gateway, upstream, port } = await startForwarded(n)
  const answer = await forward(gateway, 'default/a/b?c=1', {
    headers: { cookie: 's=1', authorization: 'Bearer console', 'x-forward-x-key': 'k' },
  })
  expect(answer.status).toBe(200)
  expect(answer.headers).toMatchObject({
    'x-seen': 'k',
    'content-security-policy': "sandbox; default-src 'none'",
    'x-content-type-options': 'nosniff',
    'x-tollgate-forwarded': '1',
  })
  expect(answer.headers).not.toHaveProperty('set-cookie')
  expect(answer.headers).not.toHaveProperty('clear-site-data')
  const seen = JSON.parse(answer.text)
  expect(seen.path).toBe('/a/b?c=1')
  expect(seen.headers).not.toHaveProperty('cookie')
  expect(seen.headers).not.toHaveProperty('authorization')
  // TLS by the name of the listener.
  expect((await forward(gateway, 'secure/x')).status).toBe(200)
  expect(upstream.seen.at(-1)?.path).toBe('/x')

  // From `ui` on a gateway: larger than what the API buffers between threads.
  const body = 'x'.repeat(3_000_000)
  const ui = { authorization: 'Bearer ui-key' }
  const large = await call(port, '/api/forward/default/large', {
    ...{ method: 'POST', body },
    headers: { ...consoleHeaders, ...ui, 'content-type': 'text/plain' },
  })
  expect(JSON.parse(large.text)).toMatchObject({ length: body.length })
  expect(upstream.seen.at(-1)?.headers).not.toHaveProperty('authorization')
  const anonymous = await call(port, '/api/forward/default/x', { headers: consoleHeaders })
  expect(anonymous.status).toBe(401)
  const foreign = await call(port, '/api/forward/default/x', { headers: ui })
  expect(foreign.status).toBe(403)

  for (const [at, headers] of [
    [gateway.adminPort, { host: `127.0.0.1:${gateway.adminPort}` }],
    [port, ui],
  ] as const) {
    const stream = await openStream({ port: at, upstream, headers }, '/api/forward/default/stream')
    expect(stream.first).toBe('data: first\n\n')
    stream.abort()
    await until('the upstream request is aborted', () => upstream.seen.at(-1)?.aborted === true)
  }
})

it('an unanswered request ends with the disconnect of the browser', async () => {
  const { gateway, upstream } = await startForwarded(1)
  upstream.next(() => {})
  const request = requestHttp({
    host: '127.0.0.1',
    port: gateway.adminPort,
    path: '/api/forward/default/slow',
    headers: { ...consoleHeaders, host: `127.0.0.1:${gateway.adminPort}` },
    agent: false,
  })
  request.on('error', () => {})
  request.end()
  await until('the upstream has the request', () => upstream.seen.length === 1)
  request.destroy()
  await until('the upstream request is aborted', () => upstream.seen[0]?.aborted === true)
})

it('only listeners of the configuration are reachable', async () => {
  const { gateway } = await startForwarded(1)
  expect((await forward(gateway, 'admin/x')).status).toBe(404)
  const other = await forward(gateway, 'default/x', { headers: { 'x-forward-host': 'evil.test' } })
  expect(other.status).toBe(200)
  expect(JSON.parse(other.text).headers['x-forwarded-host'] ?? 'evil.test').toBe('evil.test')
  // A page of another origin cannot pass the check of the admin address.
  const foreign = await forward(gateway, 'default/x', { headers: { origin: 'http://evil.test' } })
  expect(foreign.status).toBe(403)
})
