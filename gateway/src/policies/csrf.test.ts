import { describe, expect, it } from 'vitest'
import { fixtureExchange, textOf, throughPolicies } from '../../test/fixtures/pipeline.ts'
import { checkCsrf, compileCsrf } from './csrf.ts'

const policy = compileCsrf(
  { additionalOrigins: ['https://portal.example.com'] },
  (origin) => origin === 'https://cors.example.com',
)

function send(headers: Record<string, string>, method = 'POST', upgrade?: string) {
  const exchange = { ...fixtureExchange({ method, host: 'gw.example.com:8443', headers }), upgrade }
  exchange.errorFormat = 'text'
  return throughPolicies([policy], exchange)
}

describe('a request that may change something', () => {
  it.each([
    ['of a program', {}],
    [
      'of a page of the same origin',
      { 'sec-fetch-site': 'same-origin', origin: 'https://gw.example.com:8443' },
    ],
    ['of the user', { 'sec-fetch-site': 'none' }],
    ['of an additional origin', { 'sec-fetch-site': 'cross-site', origin: 'https://portal.example.com' }],
    [
      'of an origin with access by cors',
      { 'sec-fetch-site': 'same-site', origin: 'https://cors.example.com' },
    ],
    ['of an old browser with the own host', { origin: 'https://GW.example.com:8443' }],
  ])('%s passes', (_title, headers) => expect(send(headers).status).toBe(200))

  it.each([
    ['of another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example.net' }],
    ['of a subdomain', { 'sec-fetch-site': 'same-site', origin: 'https://blog.example.com' }],
    ['without its origin', { 'sec-fetch-site': 'cross-site' }],
    ['of a sandboxed frame', { origin: 'null' }],
    ['of an old browser with another host', { origin: 'https://evil.example.net' }],
    ['of another port', { origin: 'https://gw.example.com' }],
    ['with a similar origin', { origin: 'https://portal.example.com.evil.net' }],
    ['with an unknown relation', { 'sec-fetch-site': 'what' }],
  ])('%s is refused', (_title, headers) => {
    const reply = send(headers)
    expect(reply.status).toBe(403)
    expect(textOf(reply)).toContain('cross-origin request detected')
  })

  it.each(['PUT', 'DELETE', 'PATCH', 'TRACE', 'post'])('has the method %s, too', (method) => {
    expect(send({ 'sec-fetch-site': 'cross-site' }, method).status).toBe(403)
  })
})

it.each(['GET', 'HEAD', 'OPTIONS'])('%s passes from every page', (method) => {
  expect(send({ 'sec-fetch-site': 'cross-site', origin: 'https://evil.example.net' }, method).status).toBe(
    200,
  )
})

it('refuses WebSockets of pages of other origins', () => {
  const origin = 'https://gw.example.com:8443'
  expect(send({ origin: 'https://evil.example.net' }, 'GET', 'websocket').status).toBe(403)
  expect(send({ origin }, 'GET', 'websocket').status).toBe(200)
})

it.each(['https://*.example.com', 'https://example.com/', 'example.com', 'https://Example.com', '*', 'null'])(
  'reports %s as an origin that no browser sends',
  (origin) => {
    const found: string[] = []
    checkCsrf({ additionalOrigins: ['http://localhost:3000', origin] }, (path) => found.push(path.join('.')))
    expect(found).toEqual(['additionalOrigins.1'])
  },
)
