import { afterEach, describe, expect, it, vi } from 'vitest'
import { createCancellation } from '../../lib/cancellation.ts'
import { systemClock } from '../../lib/clock.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { createWorkQueue } from '../../lib/scheduling/work-queue.ts'
import { type Body, type BodySource, isSource, readAll } from '../../net/http/body.ts'
import type { OutgoingRequest, Reply } from '../../net/http-client/send.ts'
import type { ApiRequest } from '../../resources/api/request.ts'
import type { Log } from '../../telemetry/log.ts'
import { createAdminApi } from '../api.ts'
import { type ForwardLimits, forwardEndpoints } from './forward.ts'
import { replyHeaders } from './reply-headers.ts'
import { forwardedHeaders } from './request-headers.ts'
import { forwardTarget } from './target.ts'

const config = {
  config: { bindAddress: '127.0.0.1' },
  gateways: {
    default: { port: 8080 },
    secure: {
      port: 8443,
      listeners: [
        { name: 'any', hostname: '*.a.test', protocol: 'HTTPS' as const, tls: {} },
        { name: 'b', hostname: 'b.test', protocol: 'HTTPS' as const, tls: {} },
      ],
    },
    raw: { port: 9000, protocol: 'TCP' as const },
  },
  llm: { port: 4000 },
}

const limits: ForwardLimits = {
  maxBodyBytes: 10,
  maxForwards: 2,
  maxDurationMs: 60_000,
  firstByteTimeoutMs: 1_000,
  idleTimeoutMs: 1_000,
}

function world(respond: (request: OutgoingRequest) => Promise<Reply>) {
  const sent: OutgoingRequest[] = []
  const log = { error() {} } as unknown as Log
  const api = createAdminApi({
    endpoints: forwardEndpoints({
      config: () => config,
      send(request) {
        sent.push(request)
        return respond(request)
      },
      limits,
    }),
    next: async () => ({ status: 404, headers: {}, body: undefined }),
    workQueue: createWorkQueue(systemClock),
    log,
  })
  const call = (target: string, request: Partial<ApiRequest> = {}) =>
    api({
      method: 'GET',
      target,
      body: undefined,
      address: '127.0.0.1',
      ...request,
      headers: { 'x-tollgate-console': '1', ...request.headers },
    })
  return { api, call, sent }
}

const ok = async (): Promise<Reply> => ({ status: 200, headers: {}, body: Buffer.from('ok') })

function source(chunks: readonly string[]): BodySource & { isCancelled(): boolean } {
  let isCancelled = false
  return {
    start(sink) {
      for (const chunk of chunks) sink.write(Buffer.from(chunk))
      sink.end()
    },
    resume() {},
    cancel() {
      isCancelled = true
    },
    isCancelled: () => isCancelled,
  }
}

/** A body that never ends. */
function pending(): BodySource {
  return { start() {}, resume() {}, cancel() {} }
}

async function textOf(body: Body): Promise<string> {
  return String(await readAll(body, 1_000, 'internal'))
}

afterEach(() => {
  vi.useRealTimers()
})

describe('forwarded requests', () => {
  it('reach the own listener with path and query', async () => {
    const { call, sent } = world(ok)
    await call('/api/forward/default/v1/a%2Fb/?x=1&x=2')
    await call('/api/forward/llm')
    expect(sent).toMatchObject([
      { origin: 'http://127.0.0.1:8080', path: '/v1/a%2Fb/?x=1&x=2', headers: { host: '127.0.0.1:8080' } },
      { origin: 'http://127.0.0.1:4000', path: '/' },
    ])
  })

  it('cannot leave their gateway by dot segments', async () => {
    const { call, sent } = world(ok)
    expect((await call('/api/forward/default/../../config/status')).status).toBe(404)
    expect((await call('/api/forward/default/a/../../../x')).status).toBe(404)
    expect(sent).toEqual([])
  })

  it('require the header of the console', async () => {
    const { api, sent } = world(ok)
    const body = source(['x'])
    const request = { method: 'POST', target: '/api/forward/default/x', headers: {}, body, address: '::1' }
    expect((await api(request)).status).toBe(403)
    expect(body.isCancelled()).toBe(true)
    expect(sent).toEqual([])
  })

  it('stream their body up to the limit', async () => {
    const { call, sent } = world(async ({ body }) => {
      if (typeof body === 'string') throw new Error('expected a body')
      const text = await readAll(body, 100, 'internal')
      return { status: 200, headers: {}, body: text }
    })
    const reply = await call('/api/forward/default/x', { method: 'POST', body: source(['12345', '67890']) })
    expect(await textOf(reply.body)).toBe('1234567890')
    const large = source(['12345', '678901'])
    expect((await call('/api/forward/default/x', { method: 'POST', body: large })).status).toBe(413)
    expect(large.isCancelled()).toBe(true)
    const declared = { method: 'POST', headers: { 'content-length': '11' }, body: source([]) }
    expect((await call('/api/forward/default/x', declared)).status).toBe(413)
    expect(sent).toHaveLength(2)
  })

  it('are limited in number until their responses end', async () => {
    const { call } = world(async () => ({ status: 200, headers: {}, body: pending() }))
    const first = await call('/api/forward/default/x')
    await call('/api/forward/default/x')
    expect((await call('/api/forward/default/x')).status).toBe(503)
    if (isSource(first.body)) first.body.cancel()
    expect((await call('/api/forward/default/x')).status).toBe(200)
  })

  it('end with the disconnect of the client, and after the longest duration', async () => {
    vi.useFakeTimers()
    const { call } = world(
      ({ cancellation }) =>
        new Promise((_, reject) =>
          cancellation?.onCancel(() => reject(new GatewayError('request_aborted', 'closed'))),
        ),
    )
    const cancellation = createCancellation()
    const aborted = call('/api/forward/default/x', { cancellation })
    cancellation.cancel()
    expect((await aborted).status).toBe(400)
    const slow = call('/api/forward/default/x')
    await vi.advanceTimersByTimeAsync(limits.maxDurationMs)
    expect((await slow).status).toBe(400)
  })

  it('report a listener that is not reachable', async () => {
    const { call } = world(() => Promise.reject(new GatewayError('upstream_connect', 'refused')))
    expect((await call('/api/forward/default/x')).status).toBe(502)
  })
})

describe('headers of forwarded requests', () => {
  it('contain what is marked, and the type of the body', () => {
    expect(
      forwardedHeaders({
        cookie: 'session=1',
        authorization: 'Bearer console',
        'x-forwarded-for': '10.0.0.1',
        accept: '*/*',
        'content-type': 'application/json',
        'x-forward-authorization': 'Bearer key',
        'x-forward-host': 'a.test',
        'x-forward-mcp-session-id': 'x',
      }),
    ).toEqual({
      kind: 'headers',
      host: 'a.test',
      headers: {
        accept: '*/*',
        'content-type': 'application/json',
        authorization: 'Bearer key',
        'mcp-session-id': 'x',
      },
    })
  })

  it.each([
    ['x-forward-transfer-encoding', 'chunked'],
    ['x-forward-content-length', '1'],
    ['x-forward-connection', 'close'],
    ['x-forward-upgrade', 'websocket'],
    ['x-forward-x-forwarded-for', '10.0.0.1'],
    ['x-forward-forwarded', 'for=10.0.0.1'],
    ['x-forward-x-forward-host', 'a'],
    ['x-forward-x-tollgate-console', '1'],
    ['x-forward-', 'a'],
    ['x-forward-:path', 'a'],
    ['x-forward-a b', 'a'],
    ['x-forward-a', 'b\r\nc: d'],
    ['x-forward-a', 'b\0'],
    ['x-forward-a', ' b'],
  ])('are refused for %s', (name, value) => {
    expect(forwardedHeaders({ [name]: value })).toMatchObject({ kind: 'refused', status: 400 })
  })

  it('are limited in number', () => {
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`x-forward-a${index}`, 'b']))
    expect(forwardedHeaders(many)).toMatchObject({ kind: 'refused' })
  })
})

describe('headers of forwarded responses', () => {
  it('are inert in a browser', () => {
    const headers = replyHeaders({
      'content-type': 'text/html',
      'set-cookie': ['a=b'],
      'access-control-allow-origin': '*',
      'clear-site-data': '*',
      'strict-transport-security': 'max-age=1',
      'content-security-policy': "default-src 'unsafe-inline'",
      'content-security-policy-report-only': 'x',
      'service-worker-allowed': '/',
      'x-tollgate-forwarded': '0',
      'transfer-encoding': 'chunked',
      location: 'https://evil.test',
      'www-authenticate': 'Basic',
      'x-ratelimit-remaining': '1',
    })
    expect(headers).toEqual({
      'content-type': 'text/html',
      'x-ratelimit-remaining': '1',
      'x-forward-location': 'https://evil.test',
      'x-forward-www-authenticate': 'Basic',
      'cache-control': 'no-store',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'x-tollgate-forwarded': '1',
    })
  })
})

describe('forwardTarget', () => {
  it('selects the certificate by the requested host', () => {
    expect(forwardTarget(config, 'secure', 'x.a.test:8443')).toMatchObject({
      origin: 'https://127.0.0.1:8443',
      host: 'x.a.test:8443',
      connection: { tls: { serverName: 'x.a.test' } },
    })
    expect(forwardTarget(config, 'secure', undefined)).toMatchObject({
      host: 'b.test',
      connection: { tls: { serverName: 'b.test' } },
    })
    expect(forwardTarget(config, 'secure', '[::1]:8443')).toMatchObject({
      connection: { tls: { serverName: undefined } },
    })
  })

  it('reaches wildcard addresses on the loopback address', () => {
    const wildcard = { ...config, config: {} }
    expect(forwardTarget(wildcard, 'llm', undefined)).toMatchObject({ origin: 'http://127.0.0.1:4000' })
    const specific = { ...config, config: { bindAddress: 'fd00::1' } }
    expect(forwardTarget(specific, 'llm', undefined)).toMatchObject({ origin: 'http://[fd00::1]:4000' })
  })

  it.each([
    ['unknown', undefined, 404],
    ['__proto__', undefined, 404],
    ['raw', undefined, 400],
    ['default', 'a b', 400],
    ['default', 'user@a.test', 400],
    ['default', 'a.test/x', 400],
    ['default', '', 400],
  ])('refuses gateway %s with host %s', (gateway, host, status) => {
    expect(forwardTarget(config, gateway, host)).toMatchObject({ kind: 'refused', status })
  })
})
