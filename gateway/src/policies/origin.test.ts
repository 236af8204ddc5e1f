import { describe, expect, it } from 'vitest'
import { fixtureConnection, fixtureExchange, throughPolicies } from '../../test/fixtures/pipeline.ts'
import { compileOrigin, type OriginOptions } from './origin.ts'

const anywhere: OriginOptions = {
  isAllowed: (origin) => origin === 'https://chat.example.com',
  allowsAny: false,
  isLoopback: false,
  isOpen: false,
  isConfiguredHost: (host) => host.startsWith('ai.example.com'),
  hosts: ['mcp.example.com'],
}
const loopback: OriginOptions = { ...anywhere, isLoopback: true }

function statusOf(options: OriginOptions, host: string, origin?: string): number {
  const exchange = fixtureExchange({ host, headers: origin === undefined ? {} : { origin } })
  exchange.errorFormat = 'text'
  return throughPolicies([compileOrigin(options)], exchange).status
}

describe('an origin', () => {
  it.each([
    ['none', undefined],
    ['an allowed one', 'https://chat.example.com'],
    ['the same as the host', 'http://gw.test:3000'],
    ['the same as the host in other letters, behind TLS', 'https://GW.test:3000'],
    ['that of the configured resource', 'https://mcp.example.com'],
  ])('passes when it is %s', (_, origin) => {
    expect(statusOf(anywhere, 'gw.test:3000', origin)).toBe(200)
  })

  it.each([
    'https://evil.test',
    'http://gw.test',
    'http://gw.test:3001',
    'http://gw.test:3000.evil.test',
    'http://evil.test@gw.test:3000',
    'http://gw.test:3000/',
    'null',
    '',
    'file://',
    'http://localhost:3000',
    'https://mcp.example.com.evil.test',
  ])('is refused when it is %s', (origin) => {
    expect(statusOf(anywhere, 'gw.test:3000', origin)).toBe(403)
  })
})

describe('on loopback', () => {
  it.each([
    'localhost',
    'localhost:3000',
    '127.0.0.1:3000',
    '127.8.8.8',
    '[::1]:3000',
    'LOCALHOST:3000',
    'mcp.example.com',
  ])('the host may be %s', (host) => {
    expect(statusOf(loopback, host)).toBe(200)
  })

  it.each([
    'evil.test',
    'evil.test:3000',
    'localhost.evil.test',
    '127.0.0.1.evil.test',
    '10.0.0.1',
    '0.0.0.0',
    '[::2]',
  ])('the host may not be %s, nor a page of it', (host) => {
    expect(statusOf(loopback, host)).toBe(403)
    expect(statusOf(loopback, host, `http://${host}`)).toBe(403)
  })

  it('pages of this machine may call', () => {
    expect(statusOf(loopback, '127.0.0.1:3000', 'http://localhost:6274')).toBe(200)
    expect(statusOf(loopback, '127.0.0.1:3000', 'http://evil.test')).toBe(403)
    expect(statusOf(loopback, '127.0.0.1:3000', 'http://localhost.evil.test')).toBe(403)
  })

  it('reports the refused header', () => {
    const exchange = fixtureExchange({ host: 'evil.test' })
    throughPolicies([compileOrigin(loopback)], exchange)
    expect(exchange.log.refusedBy).toBe('host_not_allowed')
  })
})

describe('a route without authentication', () => {
  const open: OriginOptions = { ...anywhere, isOpen: true }

  type Asked = { headers?: Record<string, string>; from?: string; scheme?: 'http' | 'https'; body?: boolean }

  function ask(options: OriginOptions, host: string, asked: Asked = {}): number {
    const { headers = {}, from = '127.0.0.1', scheme = 'http', body = false } = asked
    const exchange = {
      ...fixtureExchange({ host, headers, scheme }),
      connection: fixtureConnection({ remoteAddress: from }),
      body: body ? Buffer.from('{}') : undefined,
    }
    return throughPolicies([compileOrigin(options)], exchange).status
  }

  it.each(['127.0.0.1', '::1', '::ffff:127.0.0.1', '172.17.0.1', '192.168.1.7', 'fe80::1'])(
    'serves %s under local and configured hosts only',
    (from) => {
      for (const host of ['localhost:4000', '192.168.1.2:4000', 'tollgate', 'ai.example.com'])
        expect(ask(open, host, { from })).toBe(200)
      for (const host of ['evil.example:4000', 'localhost.evil.example'])
        expect(ask(open, host, { from })).toBe(403)
    },
  )

  it.each([
    ['loopback', loopback],
    ['all addresses', open],
  ])('serves requests without a host, which browsers do not send, on %s', (_, options) => {
    expect(ask(options, '')).toBe(200)
    expect(ask(options, '', { headers: { origin: 'http://evil.example' } })).toBe(403)
  })

  it('serves public clients, TLS and routes with hostnames under every host', () => {
    expect(ask(open, 'evil.example', { from: '203.0.113.9' })).toBe(200)
    expect(ask(open, 'any.example', { scheme: 'https' })).toBe(200)
    expect(ask({ ...open, isConfiguredHost: undefined }, 'any.example')).toBe(200)
    expect(ask(anywhere, 'any.example')).toBe(200)
  })

  it('judges the client behind a trusted proxy, not the proxy', () => {
    const statusFor = (address: string) => {
      const exchange = {
        ...fixtureExchange({ host: 'evil.example' }, { source: { address, port: 0 } }),
        peer: { address: '127.0.0.1', scheme: 'http' as const, host: 'evil.example' },
      }
      return throughPolicies([compileOrigin(open)], exchange).status
    }
    expect(statusFor('203.0.113.9')).toBe(200)
    expect(statusFor('192.168.1.7')).toBe(403)
  })

  it('refuses requests of other sites that name no origin', () => {
    const foreign = { 'sec-fetch-site': 'cross-site' }
    expect(ask(open, 'localhost', { headers: foreign })).toBe(403)
    expect(ask({ ...open, allowsAny: true }, 'localhost', { headers: foreign })).toBe(200)
    expect(ask(open, 'localhost', { headers: { 'sec-fetch-site': 'same-origin' } })).toBe(200)
    const allowed = { ...foreign, origin: 'https://chat.example.com' }
    expect(ask(open, 'localhost', { headers: allowed })).toBe(200)
    expect(ask(anywhere, 'localhost', { headers: foreign })).toBe(200)
  })

  it('refuses bodies of pages without a content type', () => {
    const origin = 'https://chat.example.com'
    expect(ask(open, 'localhost', { headers: { origin }, body: true })).toBe(415)
    expect(ask(open, 'localhost', { headers: { origin }, body: false })).toBe(200)
    const typed = { origin, 'content-type': 'application/json' }
    expect(ask(open, 'localhost', { headers: typed, body: true })).toBe(200)
    expect(ask(open, 'localhost', { body: true })).toBe(200)
  })

  it('serves pages of this machine to clients on it', () => {
    const headers = { origin: 'http://localhost:6274' }
    expect(ask(open, '127.0.0.1:3000', { headers })).toBe(200)
    expect(ask(open, '10.0.0.2:3000', { headers, from: '10.0.0.9' })).toBe(403)
  })
})

describe('explain', () => {
  it('describes whether host and origin are allowed, without their values', () => {
    const explained = (host: string, headers: Record<string, string>) =>
      compileOrigin(loopback).explain?.(fixtureExchange({ host, headers }))
    expect(explained('localhost:3000', {})).toEqual({ host: 'allowed' })
    expect(explained('evil.test', {})).toEqual({ host: 'not allowed' })
    expect(explained('localhost', { origin: 'https://evil.test' })).toEqual({
      host: 'allowed',
      origin: 'not allowed',
    })
  })
})
