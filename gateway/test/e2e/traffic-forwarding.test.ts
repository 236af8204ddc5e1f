import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePort } from '../support/free-port.ts'
import { call } from '../support/http-call.ts'
import { listening } from '../support/listening.ts'
import { jsonAnswer, type MockServer, startMockServer } from '../support/mock-server.ts'
import { namedUpstream, routingConfig, sharedRouting } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const routing = sharedRouting()

type Policies = Record<string, unknown>

/** One route to upstreams. */
function to(backends: unknown[], policies: Policies = {}, path = '/'): Record<string, unknown> {
  return { matches: [{ path: { pathPrefix: path } }], policies, backends }
}

function last({ seen }: MockServer) {
  const request = seen.at(-1)
  if (!request) throw new Error('the upstream was not asked')
  return request
}

/** A port that takes connections and never answers. */
async function silentHost(): Promise<string> {
  const server = createServer((socket) => socket.on('error', () => {}))
  endAfter('test', () => {
    server.close()
  })
  return `127.0.0.1:${await listening(server)}`
}

describe('headers and addresses', () => {
  it('are changed on the way there and back, the backend after the route', async () => {
    const upstream = await startMockServer((_, response) => {
      response.writeHead(200, { 'x-old': 'yes', 'x-kept': '1', server: 'up/1.0' }).end('body')
    })
    const host = `127.0.0.1:${upstream.port}`
    const { port } = await routing([
      to(
        [
          {
            host,
            policies: {
              requestHeaderModifier: { set: { 'x-backend': 'b' } },
              responseHeaderModifier: { remove: ['server'] },
            },
          },
        ],
        {
          requestHeaderModifier: { add: { 'x-many': 'two' }, set: { 'x-set': 'new' }, remove: ['X-Gone'] },
          responseHeaderModifier: { set: { 'x-reply': 'r' }, remove: ['x-old'], add: { 'x-kept': '2' } },
        },
      ),
    ])
    const answer = await call(port, '/p?q=1', {
      headers: { 'x-many': 'one', 'x-set': 'old', 'x-gone': '1', 'x-own': 'o' },
    })
    expect(last(upstream)).toMatchObject({
      path: '/p?q=1',
      headers: { 'x-many': 'one,two', 'x-set': 'new', 'x-own': 'o', 'x-backend': 'b', host },
    })
    expect(last(upstream).headers['x-gone']).toBeUndefined()
    expect(answer).toMatchObject({ text: 'body', headers: { 'x-reply': 'r', 'x-kept': '1,2' } })
    expect(answer.headers['x-old']).toBeUndefined()
    expect(answer.headers['server']).toBeUndefined()
  })

  it('are rewritten in their beginning or in whole', async () => {
    const upstream = await namedUpstream('up')
    const rewritten = (path: object, at: string) =>
      to([{ host: upstream.host }], { urlRewrite: { path } }, at)
    const { port } = await routing([
      rewritten({ prefix: '/v2' }, '/api'),
      rewritten({ prefix: '/' }, '/roots'),
      rewritten({ full: '/fixed' }, '/full'),
    ])
    for (const path of ['/api/u?a=%20b', '/api/%2e%2e/api/x', '/roots/users/', '/roots', '/full/u?x'])
      expect((await call(port, path)).status).toBe(200)
    expect(upstream.seen.map(({ path }) => path)).toEqual([
      '/v2/u?a=%20b',
      '/v2/x',
      '/users/',
      '/',
      '/fixed?x',
    ])
  })

  it('send the requested host to the upstream', async () => {
    const upstream = await namedUpstream('up')
    const hostFor = (authority: unknown, path: string) =>
      to([{ host: upstream.host }], { urlRewrite: { authority } }, path)
    const { port } = await routing([
      hostFor('auto', '/auto'),
      hostFor('none', '/none'),
      hostFor({ full: 'full.test:81' }, '/full'),
      hostFor({ host: 'host.test' }, '/host'),
    ])
    const told: Record<string, string | undefined> = {}
    for (const path of ['/auto', '/none', '/full', '/host']) {
      await call(port, path, { host: 'asked.test' })
      told[path] = last(upstream).headers.host
      expect(last(upstream).headers['x-forwarded-host']).toBe('asked.test')
    }
    expect(told).toEqual({
      '/auto': upstream.host,
      '/none': 'asked.test',
      '/full': 'full.test:81',
      '/host': 'host.test',
    })
  })

  it('may be answered with a redirect or a text, without a backend', async () => {
    const policies = (of: object, path: string) => ({
      matches: [{ path: { pathPrefix: path } }],
      policies: of,
    })
    const { port } = await routing([
      policies({ requestRedirect: { scheme: 'https', status: 301 } }, '/secure'),
      policies({ requestRedirect: { authority: { full: 'new.test:81' }, path: { prefix: '/n' } } }, '/old'),
      policies({ requestRedirect: { status: 303 } }, '/form'),
      policies({ directResponse: { status: 503, body: 'closed\n' } }, '/closed'),
      policies({ directResponse: { status: 204 } }, '/none'),
      policies({}, '/nowhere'),
    ])
    const location = async (path: string) => {
      const { status, headers, text } = await call(port, path, { host: 'a.test:8080' })
      return [status, headers.location, text]
    }
    expect(await location('/secure/x?y=1')).toEqual([301, 'https://a.test/secure/x?y=1', ''])
    expect(await location('/old/a/b?c')).toEqual([302, 'http://new.test:81/n/a/b?c', ''])
    expect(await location('/old//evil.test/..//x')).toEqual([302, 'http://new.test:81/n/x', ''])
    expect(await location('/form/')).toEqual([303, 'http://a.test:8080/form/', ''])
    expect(await call(port, '/closed')).toMatchObject({ status: 503, text: 'closed\n' })
    expect(await call(port, '/closed', { method: 'HEAD' })).toMatchObject({
      status: 503,
      text: '',
      headers: { 'content-length': '7' },
    })
    expect(await call(port, '/none')).toMatchObject({ status: 204, text: '' })
    expect((await call(port, '/nowhere')).status).toBe(503)
  })
})

describe('time limits', () => {
  it('end slow requests with 504, per attempt or in total', async () => {
    const silent = await silentHost()
    const { port } = await routing(
      [
        to([{ host: silent }], { timeout: { requestTimeout: '150ms' } }, '/request'),
        to([{ host: silent }], { timeout: { backendRequestTimeout: '150ms' } }, '/backend'),
        to([{ backend: '/named' }], {}, '/named'),
      ],
      { backends: [{ name: 'named', host: silent, policies: { http: { requestTimeout: '150ms' } } }] },
    )
    for (const path of ['/request', '/backend', '/named']) {
      const started = performance.now()
      expect((await call(port, path)).status).toBe(504)
      expect(performance.now() - started).toBeLessThan(10_000)
    }
  })

  it('do not end an answer that has begun', async () => {
    const upstream = await startMockServer((_, response) => {
      response.write('first ')
      setTimeout(() => response.end('last'), 500)
    })
    const { port } = await routing([
      to([{ host: `127.0.0.1:${upstream.port}` }], { timeout: { requestTimeout: '250ms' } }),
    ])
    expect((await call(port, '/')).text).toBe('first last')
  })
})

describe('a retry', () => {
  it('retries retryable requests, and logs it', async () => {
    const upstream = await namedUpstream('up')
    const retry = { attempts: 2, backoff: '10ms', codes: [503] }
    const { port } = await routing([to([{ host: upstream.host }], { retry })])
    upstream.next(jsonAnswer(503, {}), jsonAnswer(503, {}))
    expect((await call(port, '/', { method: 'PUT', body: 'content' })).text).toBe('up')
    expect(upstream.seen.map(({ text, headers }) => [text, headers['x-retry-attempt']])).toEqual([
      ['content', undefined],
      ['content', '1'],
      ['content', '2'],
    ])
    upstream.next(jsonAnswer(503, {}), jsonAnswer(503, {}), jsonAnswer(503, {}))
    expect((await call(port, '/')).status).toBe(503)
    upstream.next(jsonAnswer(503, {}))
    expect((await call(port, '/', { method: 'POST', body: 'order' })).status).toBe(503)
    upstream.next(jsonAnswer(502, {}))
    expect((await call(port, '/')).status).toBe(502)
    upstream.next(jsonAnswer(503, {}))
    expect((await call(port, '/', { method: 'PUT', body: 'x'.repeat(100_000) })).status).toBe(503)
  })

  it('goes to another backend, also with a POST where the first was never reached', async () => {
    const upstream = await namedUpstream('up')
    const nobody = `127.0.0.1:${await freePort()}`
    const backends = [{ host: nobody, weight: 1000 }, { host: upstream.host }]
    const { port } = await routing([to(backends, { retry: { attempts: 1 } })])
    for (let count = 0; count < 5; count++)
      expect((await call(port, '/', { method: 'POST', body: 'order' })).text).toBe('up')
  })

  it('stays within the time of the request', async () => {
    const silent = await startMockServer(() => {})
    const { port } = await routing([
      to([{ host: `127.0.0.1:${silent.port}` }], {
        retry: { attempts: 5 },
        timeout: { requestTimeout: '400ms', backendRequestTimeout: '150ms' },
      }),
    ])
    expect((await call(port, '/')).status).toBe(504)
    // After 0, 150 and 300 ms, fewer on a busy machine; six without the limit of the request.
    expect(silent.seen.length).toBeLessThanOrEqual(3)
  })
})

describe('several backends', () => {
  it('share requests by weight', async () => {
    const [three, one, none] = await Promise.all([namedUpstream('3'), namedUpstream('1'), namedUpstream('0')])
    const { port } = await routing(
      [to([{ host: three.host, weight: 3 }, { backend: '/one' }, { host: none.host, weight: 0 }])],
      { backends: [{ name: 'one', host: one.host }] },
    )
    const answers = await Promise.all(Array.from({ length: 400 }, () => call(port, '/')))
    const share = answers.filter(({ text }) => text === '3').length / answers.length
    expect(share).toBeGreaterThan(0.65)
    expect(share).toBeLessThan(0.85)
    expect(none.seen).toEqual([])
    expect(three.seen.length + one.seen.length).toBe(400)
  })

  it('leave out one that fails, take it back later, and remember across reloads', async () => {
    const good = await namedUpstream('good')
    const bad = await startMockServer(jsonAnswer(500, {}))
    const health = { eviction: { consecutiveFailures: 2, duration: '1500ms' } }
    const route = to([{ host: good.host }, { backend: '/bad' }])
    const backends = [{ name: 'bad', host: `127.0.0.1:${bad.port}`, policies: { health } }]
    const { gateway, port } = await routing([route], { backends })
    await until('the failing backend is left out', async () => {
      await call(port, '/')
      return bad.seen.length === 2
    })
    await gateway.reload(routingConfig(port, [to([{ host: good.host }], {}, '/other'), route], { backends }))
    const answers = await Promise.all(Array.from({ length: 30 }, () => call(port, '/')))
    expect(answers.every(({ text }) => text === 'good')).toBe(true)
    await until('it is asked again', async () => {
      await call(port, '/')
      return bad.seen.length > 2
    })
  })

  it('answer 503 when no server listens, and log the route', async () => {
    const { gateway, port } = await routing([
      { name: 'lost', ...to([{ host: `127.0.0.1:${await freePort()}` }]) },
    ])
    expect((await call(port, '/')).status).toBe(503)
    const line = await until('the line in the log', () =>
      gateway.requests().find(({ route }) => route === 'lost'),
    )
    expect(line).toMatchObject({ status: 503 })
  })
})

describe('a mirror', () => {
  it('receives copies without delaying the request', async () => {
    const upstream = await namedUpstream('up')
    const copies = await startMockServer((_, response) => response.writeHead(500).end('never seen'))
    const policies = {
      requestMirror: { backend: { host: `127.0.0.1:${copies.port}` } },
      urlRewrite: { path: { prefix: '/new' } },
    }
    const silent = { requestMirror: { backend: { host: await silentHost() } } }
    const { port } = await routing([
      to([{ host: upstream.host }], policies, '/a'),
      to([{ host: upstream.host }], silent, '/b'),
    ])
    const answer = await call(port, '/a/x?y', { method: 'POST', body: 'content', headers: { 'x-own': '1' } })
    expect(answer.text).toBe('up')
    await until('the copy arrives', () => copies.seen.length === 1)
    expect(last(copies)).toMatchObject({ method: 'POST', path: '/new/x?y', text: 'content' })
    expect(last(copies).headers['x-own']).toBe('1')
    const started = performance.now()
    expect((await call(port, '/b')).text).toBe('up')
    expect(performance.now() - started).toBeLessThan(10_000)
  })
})
