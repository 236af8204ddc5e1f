import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { createCancellation } from '../../lib/cancellation.ts'
import { GatewayError, type GatewayErrorCode } from '../../lib/gateway-error.ts'
import { type Body, type BodySink, type BodySource, isSource, readAll } from '../../net/http/body.ts'
import type { OutgoingRequest, Reply, Send } from '../../net/http-client/send.ts'
import type { Exchange, RequestFacts } from '../../pipeline/exchange.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import { activateEndpoints } from '../../upstream/endpoints.ts'
import { checkForwardingPolicies, checkRouteBackends, type RouteBackend } from './config.ts'
import { compileHttpBackend, type HttpBackendOptions } from './http.ts'

describe('forwarding', () => {
  it('forwards the request of the client', async () => {
    const { sent, ask } = backend([{ host: 'api.test:8080' }])
    await ask({ method: 'GET', path: '/a/b', query: '?x=1', headers: { accept: 'text/html', cookie: 'a=b' } })
    expect(sent[0]).toMatchObject({
      origin: 'http://api.test:8080',
      method: 'GET',
      path: '/a/b?x=1',
      headers: { accept: 'text/html', cookie: 'a=b' },
    })
  })

  it('drops hop-by-hop headers in both directions, and forwarding headers of the client', async () => {
    const { sent, ask } = backend([{ host: 'api.test:8080' }], {
      send: async () => ({
        status: 200,
        headers: { connection: 'x-hop', 'x-hop': '1', 'keep-alive': 'timeout=5', 'x-end': '2' },
        body: undefined,
      }),
    })
    const reply = await ask({
      headers: {
        host: 'shop.test',
        connection: 'x-one, close',
        'x-one': '1',
        'x-two': '2',
        upgrade: 'h2c',
        'transfer-encoding': 'chunked',
        'proxy-authorization': 'secret',
        expect: '100-continue',
        forwarded: 'for=evil',
        'x-forwarded-for': 'evil',
        'x-real-ip': 'evil',
      },
      host: 'shop.test',
    })
    expect(sent[0]?.headers).toEqual({
      'x-two': '2',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'shop.test',
    })
    expect(reply.headers).toEqual({ 'x-end': '2' })
  })

  it.each([
    ['trailers', 'trailers'],
    ['gzip, Trailers', 'trailers'],
    ['gzip', undefined],
    ['x-trailers', undefined],
  ])('forwards te: %s as %s', async (te, expected) => {
    const { sent, ask } = backend([{ host: 'api.test:8080' }])
    await ask({ headers: { te } })
    expect(sent[0]?.headers['te']).toBe(expected)
  })

  it('retains a trailing slash of a path', async () => {
    const { sent, run } = backend([{ host: 'api.test:8080' }])
    await run(exchangeFor({ path: '/docs', query: '?a', trailingSlash: true }))
    expect(sent[0]?.path).toBe('/docs/?a')
  })

  it('applies the changes of policies', async () => {
    const { sent, run } = backend([{ host: 'api.test:8080' }])
    const exchange = exchangeFor({ path: '/old', query: '?q', host: 'client.test', headers: { a: '1' } })
    exchange.forwarding = {
      path: '/new',
      host: 'client',
      headerEdits: [
        (headers) => {
          headers['b'] = headers['a'] ?? ''
        },
      ],
    }
    await run(exchange)
    expect(sent[0]).toMatchObject({ path: '/new?q', headers: { host: 'client.test', a: '1', b: '1' } })
    expect(exchange.facts.request.headers).toEqual({ a: '1' })
  })

  it("sends the backend's own host, credential and headers", async () => {
    const { sent, ask } = backend([
      {
        host: 'api.test:8443',
        policies: {
          backendTLS: { hostname: 'inner.test' },
          backendAuth: { key: 'secret' },
          requestHeaderModifier: { set: { 'X-Gateway': 'yes' }, remove: ['cookie'] },
          responseHeaderModifier: { add: { 'x-served': 'yes' } },
        },
      },
    ])
    const reply = await ask({ headers: { host: 'shop.test', cookie: 'a=b', authorization: 'Basic x' } })
    expect(sent[0]?.origin).toBe('https://api.test:8443')
    expect(sent[0]?.headers).toMatchObject({ authorization: 'Bearer secret', 'x-gateway': 'yes' })
    expect(sent[0]?.headers['cookie']).toBeUndefined()
    expect(sent[0]?.headers['host']).toBeUndefined()
    expect(sent[0]?.connection?.tls?.serverName).toBe('inner.test')
    expect(reply.headers['x-served']).toBe('yes')
  })

  it('buffers a small body and streams a large one, with its length', async () => {
    const { sent, run } = backend([{ host: 'api.test:8080' }])
    const headers = { 'content-length': '4' }
    await run({ ...exchangeFor({ headers }), body: sourceOf('full') })
    expect(sent[0]?.body).toEqual(Buffer.from('full'))
    const large = { 'content-length': '100000' }
    await run({ ...exchangeFor({ headers: large }), body: sourceOf('x'.repeat(100_000)) })
    expect(isSource(sent[1]?.body as Body)).toBe(true)
    expect(sent[1]?.headers['content-length']).toBe('100000')
    await run({ ...exchangeFor({ headers: { 'transfer-encoding': 'chunked' } }), body: sourceOf('few') })
    expect(isSource(sent[2]?.body as Body)).toBe(true)
    expect(sent[2]?.headers['content-length']).toBeUndefined()
  })

  it('forwards upgrades, informational responses and cancellation', async () => {
    const { sent, run } = backend([{ host: 'api.test:8080' }])
    const informational = () => {}
    const exchange = { ...exchangeFor({}), upgrade: 'websocket', informational }
    await run(exchange)
    expect(sent[0]).toMatchObject({ upgrade: 'websocket', onInformational: informational })
    expect(sent[0]?.cancellation).toBe(exchange.cancellation)
  })

  it('drops the length of a response without content', async () => {
    const { ask } = backend([{ host: 'api.test:8080' }], {
      send: async () => ({ status: 204, headers: { 'content-length': '0' }, body: undefined }),
    })
    expect((await ask({})).headers).toEqual({})
  })

  it('does not forward TRACE, which would reveal the credential of the backend', async () => {
    const { sent, ask } = backend([{ host: 'a.test:1', policies: { backendAuth: { key: 'k' } } }])
    const reply = await ask({ method: 'TRACE' })
    expect(reply).toMatchObject({ status: 405, headers: { allow: expect.stringContaining('GET') } })
    expect(sent).toHaveLength(0)
  })

  it('replies 503 without a positive weight', async () => {
    const { ask } = backend([{ host: 'api.test:8080', weight: 0 }])
    expect(await ask({})).toMatchObject({ status: 503 })
    expect(await backend([]).ask({})).toMatchObject({ status: 503 })
  })
})

describe('a choice of backends', () => {
  it('follows the weights', async () => {
    const entries = [{ host: 'a.test:1', weight: 3 }, { host: 'b.test:1' }, { host: 'c.test:1', weight: 0 }]
    let next = 0
    const { sent, ask } = backend(entries, { random: () => (next++ % 100) / 100 })
    for (let call = 0; call < 100; call += 1) await ask({})
    const hosts = sent.map(({ origin }) => origin)
    expect(hosts.filter((origin) => origin === 'http://a.test:1')).toHaveLength(75)
    expect(hosts.filter((origin) => origin === 'http://b.test:1')).toHaveLength(25)
  })

  it('excludes failing backends, but never all', async () => {
    const policies = { health: { eviction: { duration: '10s' } } }
    const entries = [
      { host: 'a.test:1', policies },
      { host: 'b.test:1', policies },
    ]
    const failing = new Set(['http://a.test:1'])
    const { sent, ask, context } = backend(entries, {
      random: () => 0,
      send: async ({ origin }) => {
        if (failing.has(origin)) throw new GatewayError('upstream_connect', 'no')
        return ok()
      },
    })
    await expect(ask({})).rejects.toThrow('no')
    await ask({})
    expect(sent[1]?.origin).toBe('http://b.test:1')
    failing.add('http://b.test:1')
    await expect(ask({})).rejects.toThrow('no')
    await expect(ask({})).rejects.toThrow('no')
    expect(sent).toHaveLength(4)
    failing.clear()
    context.clock.advance(10_000)
    await ask({})
    expect(sent[4]?.origin).toBe('http://a.test:1')
  })

  it.each([
    ['blames no backend while it waits for a body', 'slow client', 'a'],
    ['blames a backend that does not take the body', 'full', 'b'],
    ['blames a backend that has the body and says nothing', 'ended', 'b'],
    ['blames a backend that never came to the body', 'not started', 'b'],
  ])('%s', async (_, state, next) => {
    const policies = { health: { eviction: {} } }
    const entries = [
      { host: 'a.test:1', policies },
      { host: 'b.test:1', policies },
    ]
    const { sent, run } = backend(entries, {
      random: () => 0,
      send: async ({ body }) => {
        if (state !== 'not started' && typeof body === 'object' && isSource(body)) {
          body.start({ write: () => state !== 'full', end() {}, fail() {} })
        }
        throw new GatewayError('upstream_timeout', 'late')
      },
    })
    const slow: BodySource = {
      start(sink) {
        sink.write(Buffer.from('a'))
        if (state === 'ended') sink.end()
      },
      resume() {},
      cancel() {},
    }
    const ask = async () => run({ ...exchangeFor({ method: 'POST' }), body: slow })
    await expect(ask()).rejects.toThrow('late')
    await expect(ask()).rejects.toThrow('late')
    expect(sent[1]?.origin).toBe(`http://${next}.test:1`)
  })

  it('does not count failures of the client against a backend', async () => {
    const policies = { health: { eviction: {} } }
    const { sent, ask } = backend(
      [
        { host: 'a.test:1', policies },
        { host: 'b.test:1', weight: 1, policies },
      ],
      {
        random: () => 0,
        send: async () => {
          throw new GatewayError('request_aborted', 'gone')
        },
      },
    )
    for (let call = 0; call < 3; call += 1) await expect(ask({})).rejects.toThrow('gone')
    expect(sent.map(({ origin }) => origin)).toEqual(Array(3).fill('http://a.test:1'))
  })

  it('resolves backends by name, and delegates to other kinds', async () => {
    const named: NamedBackend[] = [
      { name: 'one', host: 'one.test:1', policies: { backendAuth: { key: 'named' } } },
      { name: 'tools', mcp: {} },
    ]
    const other = backend([{ backend: '/tools' }], { named })
    expect(await other.ask({})).toMatchObject({ status: 299 })
    const own = backend([{ backend: '/one', policies: { tcp: { connectTimeout: '1s' } } }], { named })
    await own.ask({})
    expect(own.sent[0]).toMatchObject({
      origin: 'http://one.test:1',
      headers: { authorization: 'Bearer named' },
      connection: { connectTimeoutMs: 1_000 },
    })
    expect(() => backend([{ backend: '/two' }], { named })).toThrow('no backend is named "two"')
  })

  it("defaults to the route's TLS and credential, and to no other policy of the route", async () => {
    const policies = {
      backendTLS: {},
      backendAuth: { key: 'of-route' },
      requestHeaderModifier: { set: { 'x-twice': 'no' } },
    }
    const { sent, ask } = backend([{ host: 'a.test:1', policies: { backendAuth: { key: 'own' } } }], {
      policies,
    })
    await ask({})
    expect(sent[0]).toMatchObject({ origin: 'https://a.test:1', headers: { authorization: 'Bearer own' } })
    expect(sent[0]?.headers['x-twice']).toBeUndefined()
  })
})

describe('time limits', () => {
  it('apply the shortest', async () => {
    const limitOf = async (requestTimeout?: string, backendRequestTimeout?: string, own?: string) => {
      const { sent, ask, context } = backend(
        [{ host: 'a.test:1', policies: own === undefined ? {} : { http: { requestTimeout: own } } }],
        { policies: { timeout: { requestTimeout, backendRequestTimeout } } },
      )
      // The fixture's exchanges begin at 0.
      context.clock.advance(1_000 - context.clock.monotonic())
      await ask({})
      return sent[0]?.firstByteTimeoutMs
    }
    expect(await limitOf()).toBeUndefined()
    expect(await limitOf('5s')).toBe(4_000)
    expect(await limitOf('5s', '3s')).toBe(3_000)
    expect(await limitOf('5s', '10s')).toBe(4_000)
    expect(await limitOf(undefined, '3s', '20s')).toBe(3_000)
    expect(await limitOf(undefined, undefined, '20s')).toBe(20_000)
    expect(await limitOf('0s', '0s', '0s')).toBeUndefined()
  })

  it.each([
    ['once', {}],
    ['again', { retry: { attempts: 1 } }],
  ])('apply to a buffered body, %s', async (_, policies) => {
    const { run, sent, context } = backend([{ host: 'a.test:1' }], {
      policies: { timeout: { requestTimeout: '20ms' }, ...policies },
    })
    context.clock.advance(-context.clock.monotonic())
    let cancelled = 0
    const body: BodySource = { start() {}, resume() {}, cancel: () => void cancelled++ }
    const exchange = exchangeFor({ method: 'POST', headers: { 'content-length': '3' } })
    await expect(run({ ...exchange, body })).rejects.toMatchObject({ code: 'upstream_timeout' })
    expect([cancelled, sent.length]).toEqual([1, 0])
  })

  it('that expired before the attempt end the request', () => {
    const { run, context, sent } = backend([{ host: 'a.test:1' }], {
      policies: { timeout: { requestTimeout: '1s' } },
    })
    context.clock.advance(10_000)
    expect(() => run(exchangeFor({}))).toThrow(expect.objectContaining({ code: 'upstream_timeout' }))
    expect(sent).toHaveLength(0)
  })
})

describe('a retry', () => {
  const retry = { attempts: 2, backoff: '1ms' }

  it('goes to another backend with the number of the attempt', async () => {
    const { sent, ask } = backend([{ host: 'a.test:1' }, { host: 'b.test:1' }], {
      policies: { retry },
      random: () => 0,
      send: async ({ origin }) => (origin === 'http://a.test:1' ? status(503) : ok()),
    })
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 200 })
    expect(sent.map(({ origin, headers }) => [origin, headers['x-retry-attempt']])).toEqual([
      ['http://a.test:1', undefined],
      ['http://b.test:1', '1'],
    ])
  })

  it('ends with the last response if all failed', async () => {
    const { sent, ask } = backend([{ host: 'a.test:1' }], {
      policies: { retry },
      send: async () => status(502),
    })
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 502 })
    expect(sent).toHaveLength(3)
  })

  it('is made for responses that meet the condition', async () => {
    const condition = 'response.headers["x-state"] == "busy" && request.method == "GET"'
    const { sent, ask } = backend([{ host: 'a.test:1' }], {
      policies: { retry: { ...retry, condition } },
      send: async () => (sent.length === 1 ? { ...ok(), headers: { 'x-state': 'busy' } } : ok()),
    })
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 200 })
    expect(sent).toHaveLength(2)
  })

  it.each([
    ['request.path == "/a"', 3],
    ['request.path == "/b"', 1],
    ['request.headers["missing"] == ""', 1],
  ])('with the precondition %s leads to %i calls', async (precondition, calls) => {
    const { sent, ask } = backend([{ host: 'a.test:1' }], {
      policies: { retry: { ...retry, precondition } },
      send: async () => status(503),
    })
    await ask({ method: 'GET', path: '/a' })
    expect(sent).toHaveLength(calls)
  })

  it('has no response of an earlier attempt', async () => {
    const seen: unknown[] = []
    const exchange = exchangeFor({ method: 'GET' })
    const { run } = backend([{ host: 'a.test:1' }], {
      policies: { retry },
      send: async () => {
        seen.push(exchange.facts.response)
        exchange.facts.response = { code: 503, headers: {}, body: Buffer.from('earlier') }
        return status(503)
      },
    })
    await run(exchange)
    expect(seen).toEqual([undefined, undefined, undefined])
  })

  it('is not made for successful responses', async () => {
    const { sent, ask } = backend([{ host: 'a.test:1' }], {
      policies: { retry },
      send: async () => status(500),
    })
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 500 })
    expect(sent).toHaveLength(1)
  })

  it.each([
    ['GET', 'upstream_reset', 3],
    ['GET', 'upstream_timeout', 3],
    ['PUT', 'upstream_reset', 3],
    ['POST', 'upstream_reset', 1],
    ['POST', 'upstream_timeout', 1],
    ['POST', 'upstream_connect', 3],
    ['GET', 'request_aborted', 1],
    ['GET', 'bad_request', 1],
  ] as const)('of %s after %s makes %i attempts', async (method, code: GatewayErrorCode, attempts) => {
    const { sent, ask } = backend([{ host: 'a.test:1' }], {
      policies: { retry },
      send: async () => {
        throw new GatewayError(code, 'failed')
      },
    })
    await expect(ask({ method })).rejects.toMatchObject({ code })
    expect(sent).toHaveLength(attempts)
  })

  it('of a POST is made only if configured', async () => {
    const failing: Send = async () => status(503)
    const never = backend([{ host: 'a.test:1' }], { policies: { retry }, send: failing })
    await never.ask({ method: 'POST' })
    expect(never.sent).toHaveLength(1)
    const policies = { retry: { ...retry, methods: ['POST'] } }
    const told = backend([{ host: 'a.test:1' }], { policies, send: failing })
    await told.ask({ method: 'POST' })
    expect(told.sent).toHaveLength(3)
  })

  it('sends the same body again', async () => {
    const { sent, run } = backend([{ host: 'a.test:1' }], {
      policies: { retry },
      send: async () => status(503),
    })
    await run({ ...exchangeFor({ method: 'PUT' }), body: sourceOf('again') })
    expect(sent.map(({ body }) => String(body))).toEqual(['again', 'again', 'again'])
  })

  it('is not made for a larger body, which is streamed completely', async () => {
    const texts: string[] = []
    const { sent, run } = backend([{ host: 'a.test:1' }], {
      policies: { retry },
      send: async ({ body }) => {
        texts.push(String(await readAll(body as Body, 1_000_000, 'internal')))
        return status(503)
      },
    })
    const text = 'abcdefgh'.repeat(20_000)
    expect(await run({ ...exchangeFor({ method: 'PUT' }), body: sourceOf(text) })).toMatchObject({
      status: 503,
    })
    expect(sent).toHaveLength(1)
    expect(texts[0] === text).toBe(true)
  })

  it('cancels the discarded response', async () => {
    let cancelled = 0
    const body: BodySource = {
      start() {},
      resume() {},
      cancel() {
        cancelled += 1
      },
    }
    const { ask } = backend([{ host: 'a.test:1' }], {
      policies: { retry: { attempts: 1, backoff: '1ms' } },
      send: async () => ({ status: 503, headers: {}, body }),
    })
    await ask({ method: 'GET' })
    expect(cancelled).toBe(1)
  })

  it('is not made after the client disconnected', async () => {
    const cancellation = createCancellation()
    const { sent, run } = backend([{ host: 'a.test:1' }], {
      policies: { retry: { attempts: 5, backoff: '10s' } },
      send: async () => status(503),
    })
    const reply = run({ ...exchangeFor({ method: 'GET' }), cancellation })
    setTimeout(() => cancellation.cancel(), 10)
    await expect(reply).rejects.toMatchObject({ code: 'request_aborted' })
    expect(sent).toHaveLength(1)
  })

  it('is not made for an upgrade', async () => {
    const { sent, run } = backend([{ host: 'a.test:1' }], {
      policies: { retry },
      send: async () => status(503),
    })
    await run({ ...exchangeFor({ method: 'GET' }), upgrade: 'websocket' })
    expect(sent).toHaveLength(1)
  })

  it('does not wait beyond the time limit of the request', async () => {
    const { sent, ask, context } = backend([{ host: 'a.test:1' }], {
      policies: { retry: { attempts: 5, backoff: '2s' }, timeout: { requestTimeout: '1s' } },
      send: async ({ path }) => {
        if (path === '/down') throw new GatewayError('upstream_connect', 'no')
        return status(503)
      },
    })
    context.clock.advance(-context.clock.monotonic())
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 503 })
    await expect(ask({ method: 'GET', path: '/down' })).rejects.toThrow('no')
    expect(sent).toHaveLength(2)
  })

  it('is not made after the time limit of the request', async () => {
    const { sent, ask, context } = backend([{ host: 'a.test:1' }], {
      policies: { retry, timeout: { requestTimeout: '1s' } },
      send: async () => {
        context.clock.advance(2_000)
        return status(503)
      },
    })
    context.clock.advance(-context.clock.monotonic())
    expect(await ask({ method: 'GET' })).toMatchObject({ status: 503 })
    expect(sent).toHaveLength(1)
  })
})

describe('a mirror', () => {
  const requestMirror = { backend: { host: 'mirror.test:1' } }
  const isMirror = ({ origin }: OutgoingRequest) => origin === 'http://mirror.test:1'

  it('receives a copy of the request, and its response is ignored', async () => {
    const { sent, run } = backend([{ host: 'a.test:1' }], {
      policies: { requestMirror },
      send: async (request) => (isMirror(request) ? status(500) : ok()),
    })
    const exchange = exchangeFor({ method: 'POST', path: '/x', headers: { a: '1', 'content-length': '4' } })
    expect(await run({ ...exchange, body: sourceOf('body') })).toMatchObject({ status: 200 })
    const copy = sent.find(isMirror)
    expect(copy).toMatchObject({ method: 'POST', path: '/x', headers: { a: '1' }, body: Buffer.from('body') })
    expect(copy?.cancellation).toBeUndefined()
  })

  it('receives a streamed body after its end, unless it is too large', async () => {
    const mirrored: (number | undefined)[] = []
    const { run } = backend([{ host: 'a.test:1' }], {
      policies: { requestMirror },
      send: async (request) => {
        if (isMirror(request)) mirrored.push((request.body as Uint8Array).byteLength)
        else await readAll(request.body as Body, 1_000_000, 'internal')
        return ok()
      },
    })
    await run({ ...exchangeFor({ method: 'POST' }), body: sourceOf('x'.repeat(60_000)) })
    await run({ ...exchangeFor({ method: 'POST' }), body: sourceOf('x'.repeat(70_000)) })
    expect(mirrored).toEqual([60_000])
  })

  it('that never responds blocks nothing, and receives a bounded number of copies', async () => {
    const { sent, ask } = backend([{ host: 'a.test:1' }], {
      policies: { requestMirror },
      send: (request) => (isMirror(request) ? new Promise<Reply>(() => {}) : Promise.resolve(ok())),
    })
    for (let call = 0; call < 150; call += 1) expect(await ask({})).toMatchObject({ status: 200 })
    expect(sent.filter(isMirror)).toHaveLength(100)
  })

  it('that fails receives further copies', async () => {
    const { sent, ask } = backend([{ host: 'a.test:1' }], {
      policies: { requestMirror },
      send: async (request) => {
        if (isMirror(request)) throw new GatewayError('upstream_connect', 'no')
        return ok()
      },
    })
    for (let call = 0; call < 150; call += 1) await ask({})
    expect(sent.filter(isMirror)).toHaveLength(150)
  })

  it('receives its share', async () => {
    let next = 0
    const { sent, ask } = backend([{ host: 'a.test:1' }], {
      policies: { requestMirror: { ...requestMirror, percentage: 0.25 } },
      random: () => (next++ % 100) / 100,
    })
    for (let call = 0; call < 100; call += 1) await ask({})
    expect(sent.filter(isMirror)).toHaveLength(25)
  })
})

describe('several mirrors', () => {
  it('each receive their share, of one copied body', async () => {
    const mirrored: [string, number | undefined][] = []
    const { run } = backend([{ host: 'a.test:1' }], {
      policies: {
        requestMirror: [
          { backend: { host: 'm1.test:1' } },
          { backend: { host: 'm2.test:1' } },
          { backend: { host: 'm3.test:1' }, percentage: 0 },
        ],
      },
      send: async ({ origin, body }) => {
        if (origin === 'http://a.test:1') await readAll(body as Body, 1_000_000, 'internal')
        else mirrored.push([origin, (body as Uint8Array).byteLength])
        return ok()
      },
    })
    await run({ ...exchangeFor({ method: 'POST' }), body: sourceOf('x'.repeat(60_000)) })
    expect(mirrored).toEqual([
      ['http://m1.test:1', 60_000],
      ['http://m2.test:1', 60_000],
    ])
  })
})

describe('a backend with endpoints', () => {
  const shop = { name: 'shop', endpoints: [{ host: '10.0.0.1:80' }, { host: '10.0.0.2:80', weight: 0 }] }

  it('sends requests to its active endpoints, with its policies', async () => {
    const policies = { backendTLS: { hostname: 'shop.test' }, http: { requestTimeout: '5s' } }
    const { sent, ask, context } = backend([{ backend: '/shop' }], { named: [{ ...shop, policies }] })
    await ask({})
    activateEndpoints([{ name: 'shop', endpoints: [{ host: '[::1]:8443' }] }], context)
    await ask({})
    expect(sent.map(({ origin }) => origin)).toEqual(['https://10.0.0.1:80', 'https://[::1]:8443'])
    expect(sent[1]).toMatchObject({ firstByteTimeoutMs: 5_000, connection: sent[0]?.connection })
  })

  it('responds with 503 for its share while it has none', async () => {
    let next = 0
    const { sent, ask } = backend([{ backend: '/shop', weight: 3 }, { host: 'a.test:1' }], {
      named: [{ name: 'shop', endpoints: [] }],
      random: () => (next++ % 100) / 100,
    })
    const replies: Reply[] = []
    for (let call = 0; call < 100; call += 1) replies.push(await ask({ method: 'GET' }))
    expect(replies.filter(({ status }) => status === 503)).toHaveLength(75)
    expect(sent).toHaveLength(25)
  })
})

describe('an error backend', () => {
  it('responds with its status and message', async () => {
    const { ask } = backend([{ error: { status: 502, message: 'no such Service' } }])
    const { status, body } = await ask({})
    expect(status).toBe(502)
    expect(String(body)).toContain('no such Service')
    expect(await backend([{ error: {} }]).ask({})).toMatchObject({ status: 500 })
  })
})

describe('checks of a route', () => {
  const named: NamedBackend[] = [{ name: 'tools', mcp: {} }]

  it('report unknown names', () => {
    const issues: string[] = []
    const report: ReportIssue = (path, message) => issues.push(`${path.join('.')}: ${message}`)
    checkRouteBackends([{ backend: '/tools' }, { backend: '/none' }, { host: 'a:0' }], named, report)
    checkForwardingPolicies({ requestMirror: { backend: { backend: '/tools' } } }, named, report)
    const listed = [{ backend: { host: 'a:1' } }, { backend: { backend: '/none' } }]
    checkForwardingPolicies({ requestMirror: listed }, named, report)
    checkForwardingPolicies(
      { retry: { methods: ['GE T'], precondition: 'response.code == 1' } },
      named,
      report,
    )
    expect(issues).toEqual([
      '1.backend: no backend is named "none"',
      '2.host: port 0 cannot be connected to',
      'requestMirror.backend.backend: backend "tools" is not a host',
      'requestMirror.1.backend.backend: no backend is named "none"',
      'retry.methods.0: not a method: "GE T"',
      expect.stringContaining('retry.precondition: unknown variable "response"'),
    ])
  })
})

type Setup = Partial<HttpBackendOptions<RouteBackend, NamedBackend>> & { send?: Send; random?: () => number }

function backend(entries: RouteBackend[], setup: Setup = {}) {
  const sent: OutgoingRequest[] = []
  const context = {
    ...fixtureContext(),
    random: setup.random ?? (() => 0.5),
    send: (request: OutgoingRequest) => {
      sent.push(request)
      return (setup.send ?? (async () => ok()))(request)
    },
  }
  const answer = compileHttpBackend(entries, context, {
    named: setup.named ?? [],
    policies: setup.policies ?? {},
    compileOther: setup.compileOther ?? (() => () => status(299)),
  })
  const run = (exchange: Exchange) => answer(exchange)
  return {
    sent,
    context,
    run,
    ask: (request: Partial<RequestFacts>) => settled(() => run(exchangeFor(request))),
  }
}

async function settled(run: () => Reply | Promise<Reply>): Promise<Reply> {
  return run()
}

function exchangeFor(request: Partial<RequestFacts>): Exchange {
  return fixtureExchange({ method: 'GET', path: '/', ...request })
}

function ok(): Reply {
  return status(200)
}

function status(code: number): Reply {
  return { status: code, headers: {}, body: undefined }
}

/** A body in pieces that stops where its reader is full. */
function sourceOf(text: string): BodySource {
  const bytes = Buffer.from(text)
  let at = 0
  let sink: BodySink | undefined
  function flow() {
    while (at < bytes.length) {
      const chunk = bytes.subarray(at, at + 10_000)
      at += chunk.length
      if (sink?.write(chunk) === false) return
    }
    sink?.end()
    sink = undefined
  }
  return {
    start(reader) {
      sink = reader
      queueMicrotask(flow)
    },
    resume: () => queueMicrotask(flow),
    cancel() {
      sink = undefined
    },
  }
}
