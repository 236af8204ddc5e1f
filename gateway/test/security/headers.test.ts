import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { call, http2Client } from '../support/http-call.ts'
import { type MockServer, startMockServer } from '../support/mock-server.ts'
import { routing } from '../support/traffic.ts'

let upstream: MockServer
let port = 0

beforeAll(async () => {
  upstream = await startMockServer((_, response) => response.end('ok'), 'file')
  const backends = [{ host: `127.0.0.1:${upstream.port}` }]
  const on = (pathPrefix: string) => ({ name: pathPrefix, matches: [{ path: { pathPrefix } }], backends })
  const running = await routing(
    [
      on('/default'),
      {
        ...on('/allowed'),
        allowClientHeaders: ['X-HTTP-Method-Override', 'x_legacy_name', 'x-forwarded-for'],
      },
    ],
    {},
    { lifetime: 'file' },
  )
  port = running.port
})

beforeEach(() => {
  upstream.seen.length = 0
})

const disguises = {
  'x-http-method-override': 'DELETE',
  'x-method-override': 'DELETE',
  'x-original-url': '/admin',
  'x-rewrite-url': '/admin',
  'true-client-ip': '10.0.0.1',
  'cf-connecting-ip': '10.0.0.1',
  'x-client-ip': '10.0.0.1',
  'x-real-ip': '10.0.0.1',
  forwarded: 'for=10.0.0.1',
  'x-forwarded-user': 'root',
  x_forwarded_for: '10.0.0.1',
  x_real_ip: '10.0.0.1',
  x_legacy_name: 'a',
  proxy: 'http://evil.example',
}

function received() {
  const [request] = upstream.seen
  return request?.headers ?? {}
}

describe('headers by which a client states another address, method or path', () => {
  it('do not reach an HTTP backend, in either version', async () => {
    const headers = { ...disguises, 'x-forwarded-for': '10.0.0.1', 'x-team': 'blue' }
    await call(port, '/default', { headers })
    await http2Client(port).ask('/default', { headers })
    expect(upstream.seen).toHaveLength(2)
    for (const seen of upstream.seen) {
      for (const name of Object.keys(disguises)) expect(seen.headers).not.toHaveProperty(name)
      expect(seen.headers).toMatchObject({ 'x-team': 'blue', 'x-forwarded-for': '127.0.0.1' })
    }
  })

  it('reach the backend of a route that allows them, except for fields the gateway states itself', async () => {
    await call(port, '/allowed', { headers: { ...disguises, 'x-forwarded-for': '10.0.0.1' } })
    expect(received()).toMatchObject({
      'x-http-method-override': 'DELETE',
      x_legacy_name: 'a',
      'x-forwarded-for': '127.0.0.1',
    })
    expect(received()).not.toHaveProperty('x-original-url')
  })
})
