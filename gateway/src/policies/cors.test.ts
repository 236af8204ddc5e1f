import { describe, expect, it } from 'vitest'
import { fixtureExchange, throughPolicies } from '../../test/fixtures/pipeline.ts'
import type { Headers } from '../net/http/headers.ts'
import type { Reply } from '../net/http-client/send.ts'
import { type CorsConfig, checkCors, compileCors, corsSchema } from './cors.ts'

const origin = 'https://chat.example.com'
const config: CorsConfig = {
  allowOrigins: [origin, 'https://*.example.org', 'http://localhost:*', 'vscode-webview://*.panel'],
  allowMethods: ['GET', 'POST', 'DELETE'],
  allowHeaders: ['authorization', 'content-type'],
  exposeHeaders: ['x-ratelimit-remaining'],
  maxAge: '10m',
}

function preflight(cors: CorsConfig, from: string, asked = 'authorization'): Reply {
  const headers = {
    origin: from,
    'access-control-request-method': 'POST',
    'access-control-request-headers': asked,
  }
  return throughPolicies([compileCors(cors)], fixtureExchange({ method: 'OPTIONS', headers }))
}

function replyTo(cors: CorsConfig, headers: Headers, upstream: Headers = {}): Headers {
  const exchange = fixtureExchange({ headers })
  const policy = compileCors(cors)
  expect(policy.onRequest?.(exchange)).toBeUndefined()
  const reply = { status: 200, headers: upstream, body: undefined }
  policy.onReply?.(exchange, reply)
  return reply.headers
}

function isAllowed(cors: CorsConfig, from: string): boolean {
  return replyTo(cors, { origin: from })['access-control-allow-origin'] !== undefined
}

describe('a preflight', () => {
  it('receives the permissions', () => {
    expect(preflight(config, origin)).toEqual({
      status: 200,
      headers: {
        vary: 'origin, access-control-request-method, access-control-request-headers',
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'GET, POST, DELETE',
        'access-control-allow-headers': 'authorization, content-type',
        'access-control-expose-headers': 'x-ratelimit-remaining',
        'access-control-max-age': '600',
      },
      body: undefined,
    })
  })

  it('of a refused origin is answered without permissions', () => {
    const { status, headers } = preflight(config, 'https://evil.test')
    expect(status).toBe(200)
    expect(Object.keys(headers)).toEqual(['vary'])
  })

  it('is answered with the headers asked for where any is allowed, because * leaves authorization out', () => {
    const anyHeader = { ...config, allowHeaders: ['*'], allowMethods: ['*'] }
    const { headers } = preflight(anyHeader, origin, 'authorization, x-one,x two, y\r\nz: 1')
    expect(headers['access-control-allow-headers']).toBe('authorization, x-one')
    expect(headers['access-control-allow-methods']).toBe('POST')
  })

  it('needs an origin and a method, else the request goes on', () => {
    const plain = fixtureExchange({ method: 'OPTIONS', headers: { origin } })
    expect(compileCors(config).onRequest?.(plain)).toBeUndefined()
  })
})

describe('a reply', () => {
  it('may be read by an allowed origin', () => {
    expect(replyTo(config, { origin })).toEqual({
      vary: 'origin',
      'access-control-allow-origin': origin,
      'access-control-expose-headers': 'x-ratelimit-remaining',
    })
  })

  it('differs by origin even where there is none, for the sake of caches', () => {
    expect(replyTo(config, {})).toEqual({ vary: 'origin' })
    expect(replyTo(config, {}, { vary: 'accept-encoding' })).toEqual({ vary: 'accept-encoding, origin' })
    expect(replyTo(config, {}, { vary: 'Origin' })).toEqual({ vary: 'Origin' })
  })

  it('loses the CORS headers of an upstream', () => {
    const upstream = { 'access-control-allow-origin': '*', 'access-control-allow-credentials': 'true' }
    expect(replyTo(config, { origin: 'https://evil.test' }, upstream)).toEqual({ vary: 'origin' })
  })

  it('is the same for all where any origin is allowed', () => {
    expect(replyTo({ allowOrigins: ['*'] }, { origin: 'https://any.test' })).toEqual({
      'access-control-allow-origin': '*',
    })
  })

  it('may carry credentials where that is allowed', () => {
    const headers = replyTo({ ...config, allowCredentials: true }, { origin })
    expect(headers).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
    })
  })
})

describe('* together with credentials', () => {
  const any = ['*']
  const all = {
    allowOrigins: any,
    allowMethods: any,
    allowHeaders: any,
    exposeHeaders: any,
    allowCredentials: true,
  }

  it('answers a preflight with the values of the request', () => {
    const { headers } = preflight(all, 'https://any.test', 'x-one, x-two')
    expect(headers).toEqual({
      vary: 'origin, access-control-request-method, access-control-request-headers',
      'access-control-allow-origin': 'https://any.test',
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'x-one, x-two',
    })
  })

  it('names the origin of the request and the headers of the reply', () => {
    expect(replyTo(all, { origin: 'https://any.test' }, { 'x-id': '1', 'set-cookie': 'a=1' })).toEqual({
      'x-id': '1',
      'set-cookie': 'a=1',
      vary: 'origin',
      'access-control-allow-origin': 'https://any.test',
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': 'x-id, vary',
    })
  })
})

describe('an origin', () => {
  it.each([
    origin,
    'https://a.example.org',
    'https://a.b.example.org',
    'http://localhost:5173',
    'vscode-webview://1a-2b.panel',
  ])('%s is allowed', (from) => expect(isAllowed(config, from)).toBe(true))

  it.each([
    'http://chat.example.com',
    'https://chat.example.com:8443',
    'https://chat.example.com.evil.test',
    'https://example.org',
    'https://.example.org',
    'https://evil.test/.example.org',
    'https://evil.test?.example.org',
    'https://user@a.example.org',
    'https://evilexample.org',
    'http://localhost',
    'http://localhost:',
    'null',
    '',
  ])('%s is refused', (from) => expect(isAllowed(config, from)).toBe(false))

  it('on any host has the configured scheme and port', () => {
    expect(isAllowed({ allowOrigins: ['https://*'] }, 'https://a.b.test')).toBe(true)
    expect(isAllowed({ allowOrigins: ['https://*'] }, 'http://a.b.test')).toBe(false)
    expect(isAllowed({ allowOrigins: ['https://*'] }, 'https://a.test:8443')).toBe(false)
    expect(isAllowed({ allowOrigins: ['https://*:8443'] }, 'https://a.test:8443')).toBe(true)
  })

  it('null is allowed only by name', () => {
    expect(isAllowed({ allowOrigins: ['null'] }, 'null')).toBe(true)
  })
})

describe('checking', () => {
  function issues(cors: CorsConfig): string[] {
    expect(corsSchema.safeParse(cors).success).toBe(true)
    const found: string[] = []
    checkCors(cors, (path, message) => found.push(`${path.join('.')}: ${message}`))
    return found
  }

  it('finds nothing wrong with a good config', () => expect(issues(config)).toEqual([]))

  it.each([
    'example.com',
    'https://example.com/',
    'https://example.com/path',
    'https://*a',
    'https://a.*.com',
    'https://*.*.com',
    '*.example.com',
  ])('refuses the origin %s', (allowed) => expect(issues({ allowOrigins: [allowed] })).toHaveLength(1))

  it.each(['https://*', 'https://*:8443'])('accepts the origin %s', (allowed) =>
    expect(issues({ allowOrigins: [allowed] })).toEqual([]),
  )

  it('rejects invalid names', () => {
    expect(issues({ allowHeaders: ['a b'], allowMethods: ['GET,POST'] })).toEqual([
      'allowMethods.0: not a method: "GET,POST"',
      'allowHeaders.0: not a header name: "a b"',
    ])
  })
})

describe('explain', () => {
  it('describes whether the origin is allowed, without the origin', () => {
    const explained = (headers: Headers) => compileCors(config).explain?.(fixtureExchange({ headers }))
    expect(explained({})).toBeUndefined()
    expect(explained({ origin })).toEqual({ origin: 'allowed', preflight: false })
    expect(explained({ origin: 'https://evil.test' })).toEqual({ origin: 'not allowed', preflight: false })
  })
})
