import { isIP } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseCidr } from '../lib/address/cidr.ts'
import type { Headers } from '../net/http/headers.ts'
import { type Client, createClientReader, isHost } from './client-address.ts'

const trusted = ['10.0.0.0/8', 'fd00::/8'].flatMap((text) => parseCidr(text) ?? [])
const read = createClientReader({ trusted })
const proxy: Client = { address: '10.0.0.1', scheme: 'http', host: 'inner:8080' }

function addressOf(headers: Headers, peer = proxy): string {
  return read(headers, peer).address
}

describe('createClientReader', () => {
  it('returns an untrusted peer as the client, regardless of its headers', () => {
    const peer: Client = { address: '203.0.113.9', scheme: 'http', host: 'a.test' }
    const headers = {
      'x-forwarded-for': '1.2.3.4',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'b.test',
      forwarded: 'for=1.2.3.4',
    }
    expect(read(headers, peer)).toBe(peer)
  })

  it('returns another object for a trusted peer without headers', () => {
    expect(read({}, proxy)).toEqual(proxy)
    expect(read({}, proxy)).not.toBe(proxy)
  })

  it.each([
    ['203.0.113.9', '203.0.113.9'],
    ['1.1.1.1, 203.0.113.9', '203.0.113.9'],
    ['203.0.113.9, 10.0.0.2,10.0.0.3', '203.0.113.9'],
    ['1.1.1.1, 203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['10.0.0.5, 10.0.0.2', '10.0.0.5'],
    ['203.0.113.9:4711', '203.0.113.9'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['2001:db8::1', '2001:db8::1'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['203.0.113.9, fd00::2', '203.0.113.9'],
    ['', '10.0.0.1'],
    ['unknown', '10.0.0.1'],
    ['203.0.113.9, nonsense, 10.0.0.2', '10.0.0.2'],
    ['203.0.113.9,', '10.0.0.1'],
    [`${'x'.repeat(20_000)}`, '10.0.0.1'],
  ])('reads x-forwarded-for %j as %s', (chain, address) => {
    expect(addressOf({ 'x-forwarded-for': chain })).toBe(address)
  })

  it('follows a bounded number of proxies', () => {
    const chain = Array.from({ length: 100 }, (_, index) => `10.1.0.${index}`)
    expect(addressOf({ 'x-forwarded-for': chain.join(', ') })).toBe('10.1.0.80')
  })

  it('reads repeated headers as one', () => {
    expect(addressOf({ 'x-forwarded-for': ['1.1.1.1', '203.0.113.9'] })).toBe('203.0.113.9')
  })

  it('reads scheme and host of the nearest proxy', () => {
    const headers = { 'x-forwarded-proto': 'http, HTTPS', 'x-forwarded-host': 'spoofed.test, a.test:8443' }
    expect(read(headers, proxy)).toEqual({ address: '10.0.0.1', scheme: 'https', host: 'a.test:8443' })
  })

  it.each(['ftp', '', 'https;', 'javascript'])('rejects the scheme %j', (proto) => {
    expect(read({ 'x-forwarded-proto': proto }, proxy).scheme).toBe('http')
  })

  it.each(['a b', 'a/b', 'user@a', '"a"', '', 'a:b', '<a>', 'x'.repeat(400)])(
    'does not take %j for a host',
    (host) => {
      expect(read({ 'x-forwarded-host': host }, proxy).host).toBe('inner:8080')
    },
  )

  it.each<[string, Partial<Client>]>([
    ['for=203.0.113.9', { address: '203.0.113.9' }],
    [
      'for=1.1.1.1;proto=ftp, For="203.0.113.9:80";Proto=https;host="a.test:443"',
      { address: '203.0.113.9', scheme: 'https', host: 'a.test:443' },
    ],
    [
      'for=203.0.113.9;proto=https;host=a.test, for=10.0.0.2;proto=http;host=b.test',
      { address: '203.0.113.9', scheme: 'https', host: 'a.test' },
    ],
    ['for="[2001:db8::1]:80" ; by=x', { address: '2001:db8::1' }],
    ['for="\\2\\03.0.113.9"', { address: '203.0.113.9' }],
    ['for=_hidden', {}],
    ['for=unknown;proto=https', {}],
    ['for=1.1.1.1, for=203.0.113.9;;', {}],
    ['for=203.0.113.9;for=1.1.1.1', {}],
    ['for="203.0.113.9', {}],
    ['for=203.0.113.9;host="a,b"', {}],
    // An unclosed quote of a client does not hide the element of the proxy.
    ['for="1.1.1.1, for=203.0.113.9', { address: '203.0.113.9' }],
    ['for=203.0.113.9;host="a b"', { address: '203.0.113.9' }],
    [`for=203.0.113.9;x=${'y'.repeat(600)}`, {}],
  ])('reads forwarded %j', (forwarded, client) => {
    expect(read({ forwarded }, proxy)).toEqual({ ...proxy, ...client })
  })

  it('prefers x-forwarded-for to forwarded', () => {
    expect(addressOf({ 'x-forwarded-for': '203.0.113.9', forwarded: 'for=1.1.1.1' })).toBe('203.0.113.9')
  })

  it('returns only valid addresses, schemes and hosts', () => {
    const text = fc.oneof(
      fc.string(),
      fc
        .array(
          fc.constantFrom(
            '10.0.0.2',
            '1.1.1.1',
            ',',
            ' ',
            '"',
            'for=',
            ';',
            '[::1]',
            'proto=https',
            '\\',
            '=',
          ),
          { maxLength: 12 },
        )
        .map((parts) => parts.join('')),
    )
    const headers = fc.dictionary(
      fc.constantFrom('x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded'),
      text,
      { noNullPrototype: true },
    )
    fc.assert(
      fc.property(headers, (sent) => {
        const { address, scheme, host } = read(sent, proxy)
        expect(isIP(address)).not.toBe(0)
        expect(['http', 'https']).toContain(scheme)
        expect(isHost(host)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  it('finds the client of any chain of trusted proxies, regardless of forged entries', () => {
    const hops = fc.array(
      fc.integer({ min: 1, max: 250 }).map((last) => `10.0.0.${last}`),
      { maxLength: 10 },
    )
    fc.assert(
      fc.property(fc.array(fc.string(), { maxLength: 3 }), hops, (claims, proxies) => {
        const chain = [...claims, '203.0.113.9', ...proxies].join(', ')
        expect(addressOf({ 'x-forwarded-for': chain })).toBe('203.0.113.9')
      }),
    )
  })
})
