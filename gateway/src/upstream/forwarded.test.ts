import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'
import type { Headers } from '../net/http/headers.ts'
import type { Client } from '../pipeline/client-address.ts'
import type { RequestFacts } from '../pipeline/exchange.ts'
import { isForwardingHeader, writeForwarded } from './forwarded.ts'

type From = { client: string; peer?: Client; request?: Partial<RequestFacts> }

function written(received: Headers, { client, peer, request }: From): Headers {
  const exchange = fixtureExchange(
    { headers: received, host: 'a.test', ...request },
    { source: { address: client, port: 1 } },
  )
  const headers: Headers = {}
  for (const [name, value] of Object.entries(received)) if (!isForwardingHeader(name)) headers[name] = value
  writeForwarded(headers, { ...exchange, peer })
  return headers
}

const proxy: Client = { address: '10.0.0.1', scheme: 'http', host: 'inner:8080' }

describe('writeForwarded', () => {
  it('identifies an untrusted peer and drops its forwarding headers', () => {
    const received = {
      accept: '*/*',
      forwarded: 'for=1.1.1.1',
      'x-forwarded-for': '1.1.1.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'evil.test',
      'x-forwarded-prefix': '/admin',
      'x-forwarded-port': '1',
      'x-real-ip': '1.1.1.1',
      'x-forwarded-user': 'root',
      'x-forwarded-client-cert': 'Subject="CN=root"',
      x_forwarded_for: '1.1.1.1',
      'x-real_ip': '1.1.1.1',
    }
    expect(written(received, { client: '203.0.113.9' })).toEqual({
      accept: '*/*',
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'a.test',
    })
  })

  it('appends a trusted proxy to its headers', () => {
    const received = {
      forwarded: 'for=203.0.113.9',
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-proto': 'http, https',
      'x-forwarded-host': 'b.test, a.test',
      'x-forwarded-port': '443',
      'x-forwarded-user': 'alice',
      x_forwarded_user: 'root',
    }
    const from: From = { client: '203.0.113.9', peer: proxy, request: { scheme: 'https' } }
    expect(written(received, from)).toEqual({
      forwarded: 'for=203.0.113.9, for=10.0.0.1;host="inner:8080";proto=http',
      'x-forwarded-for': '203.0.113.9, 10.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'a.test',
      'x-forwarded-port': '443',
      'x-forwarded-user': 'alice',
    })
  })

  it('writes the client to x-forwarded-for if the proxy sent forwarded', () => {
    const headers = written({ forwarded: 'for=203.0.113.9' }, { client: '203.0.113.9', peer: proxy })
    expect(headers['x-forwarded-for']).toBe('203.0.113.9, 10.0.0.1')
  })

  it('writes only a trusted peer that is the client', () => {
    expect(written({}, { client: '10.0.0.1', peer: proxy })['x-forwarded-for']).toBe('10.0.0.1')
  })

  it('quotes IPv6 addresses as RFC 7239 requires', () => {
    const peer: Client = { ...proxy, address: '2001:db8::1' }
    const headers = written({ forwarded: 'for=1.1.1.1' }, { client: '1.1.1.1', peer })
    expect(headers['forwarded']).toBe('for=1.1.1.1, for="[2001:db8::1]";host="inner:8080";proto=http')
  })

  it.each(['a"b', 'a, b', '', 'a\\', 'a;b'])('does not forward the host %j', (host) => {
    const peer: Client = { ...proxy, host }
    const headers = written({ forwarded: 'for=1.1.1.1' }, { client: '1.1.1.1', peer, request: { host } })
    expect(headers).not.toHaveProperty('x-forwarded-host')
    expect(headers['forwarded']).toBe('for=1.1.1.1, for=10.0.0.1;proto=http')
  })

  it.each(['for="1.1.1.1', 'for=a\\', 'for="a\\"'])('does not append to the broken list %j', (forwarded) => {
    const headers = written({ forwarded }, { client: '203.0.113.9', peer: proxy })
    expect(headers['forwarded']).toBe('for=10.0.0.1;host="inner:8080";proto=http')
  })

  it('does not forward an invalid host', () => {
    const received = { 'x-forwarded-host': 'a, "b' }
    const headers = written(received, { client: '10.0.0.1', peer: proxy, request: { host: '' } })
    expect(headers).not.toHaveProperty('x-forwarded-host')
  })

  it('writes mapped addresses as IPv4, and a missing one as unknown', () => {
    expect(written({}, { client: '::ffff:203.0.113.9' })['x-forwarded-for']).toBe('203.0.113.9')
    expect(written({}, { client: '' })['x-forwarded-for']).toBe('unknown')
  })
})
