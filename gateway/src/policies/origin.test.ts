import { describe, expect, it } from 'vitest'
import { fixtureExchange, throughPolicies } from '../pipeline/fixtures.ts'
import { compileOrigin, type OriginOptions } from './origin.ts'

const anywhere: OriginOptions = {
  isAllowed: (origin) => origin === 'https://chat.example.com',
  isLoopback: false,
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
    '',
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

  it('says what was refused', () => {
    const exchange = fixtureExchange({ host: 'evil.test' })
    throughPolicies([compileOrigin(loopback)], exchange)
    expect(exchange.refusedBy).toBe('host_not_allowed')
  })
})
