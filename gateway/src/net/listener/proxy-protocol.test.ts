import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addressBytes } from '../../lib/address/cidr.ts'
import { parseProxyHeader } from './proxy-protocol.ts'

const all = { versions: 'all' } as const

function parse1(text: string) {
  return parseProxyHeader(Buffer.from(text, 'latin1'), all)
}

/** A header of version 2. */
function version2(
  from: string,
  to: string,
  ports: readonly [number, number],
  more = Buffer.alloc(0),
): Buffer {
  const content = Buffer.concat([
    ...[from, to].map((text) => Buffer.from(addressBytes(text) ?? [])),
    Buffer.from(ports.flatMap((port) => [port >> 8, port & 255])),
    more,
  ])
  const family = from.includes(':') ? 0x21 : 0x11
  const head = Buffer.from([0x21, family, content.length >> 8, content.length & 255])
  return Buffer.concat([Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'), head, content])
}

describe('parseProxyHeader', () => {
  it('returns the addresses of version 1', () => {
    expect(parse1('PROXY TCP4 192.0.2.1 198.51.100.2 1234 443\r\nGET /')).toEqual({
      kind: 'header',
      length: 44,
      endpoints: {
        remoteAddress: '192.0.2.1',
        remotePort: 1234,
        localAddress: '198.51.100.2',
        localPort: 443,
      },
    })
    expect(parse1('PROXY UNKNOWN anything\r\n')).toMatchObject({ kind: 'header', endpoints: undefined })
  })

  it.each([
    'PROXY TCP4 192.0.2.1 198.51.100.2 1234\r\n',
    'PROXY TCP4 192.0.2.1 198.51.100.2 1234 65536\r\n',
    'PROXY TCP4 192.0.2.1 198.51.100.2 01 2\r\n',
    'PROXY TCP4 ::1 ::2 1 2\r\n',
    'PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n',
    'PROXY TCP6 fe80::1%lo fe80::2 1 2\r\n',
    'PROXY TCP4  192.0.2.1 198.51.100.2 1 2\r\n',
    'PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n',
    `PROXY UNKNOWN ${'x'.repeat(200)}`,
  ])('refuses %j', (text) => {
    expect(parse1(text)).toEqual({ kind: 'invalid' })
  })

  it.each(['GET / HTTP/1.1\r\n', '\r\nPROXY', '\x16\x03\x01', 'PROXZ'])('finds no header in %j', (text) => {
    expect(parse1(text)).toEqual({ kind: 'none' })
  })

  it('refuses the other version', () => {
    const one = Buffer.from('PROXY UNKNOWN\r\n')
    const two = version2('192.0.2.1', '192.0.2.2', [1, 2])
    expect(parseProxyHeader(one, { versions: 'v2' })).toEqual({ kind: 'invalid' })
    expect(parseProxyHeader(two, { versions: 'v1' })).toEqual({ kind: 'invalid' })
  })

  it('returns the addresses of version 2, with extensions ignored', () => {
    const address = fc.oneof(fc.tuple(fc.ipV4(), fc.ipV4()), fc.tuple(fc.ipV6(), fc.ipV6()))
    const port = fc.integer({ min: 0, max: 65_535 })
    fc.assert(
      fc.property(
        address,
        port,
        port,
        fc.uint8Array({ maxLength: 300 }),
        ([from, to], source, target, more) => {
          const bytes = version2(from, to, [source, target], Buffer.from(more))
          const parsed = parseProxyHeader(Buffer.concat([bytes, Buffer.from('rest')]), all)
          if (parsed?.kind !== 'header' || parsed.endpoints === undefined) throw new Error('no header')
          const { remoteAddress = '', localAddress = '', remotePort, localPort } = parsed.endpoints
          expect(parsed.length).toBe(bytes.length)
          expect([remotePort, localPort]).toEqual([source, target])
          expect([addressBytes(remoteAddress), addressBytes(localAddress)]).toEqual([
            addressBytes(from),
            addressBytes(to),
          ])
          for (let length = 1; length < bytes.length; length++)
            expect(parseProxyHeader(bytes.subarray(0, length), all)).toBeUndefined()
        },
      ),
      { numRuns: 50 },
    )
  })

  it('uses the addresses of the connection for checks of the proxy', () => {
    const bytes = version2('192.0.2.1', '192.0.2.2', [1, 2])
    bytes[12] = 0x20
    expect(parseProxyHeader(bytes, all)).toEqual({ kind: 'header', length: 28, endpoints: undefined })
  })

  it.each([
    ['another version', 12, 0x31],
    ['another command', 12, 0x22],
    ['UNIX sockets', 13, 0x31],
    ['addresses longer than the header', 13, 0x21],
    ['too long extensions', 14, 0x7f],
  ])('refuses %s', (_, index, value) => {
    const bytes = version2('192.0.2.1', '192.0.2.2', [1, 2])
    bytes[index] = value
    expect(parseProxyHeader(bytes, all)).toEqual({ kind: 'invalid' })
  })

  it('decides on any bytes within 528 bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 528, maxLength: 600 }), fc.boolean(), (tail, isSecond) => {
        const start = isSecond ? '\r\n\r\n\0\r\nQUIT\n' : 'PROXY '
        const bytes = Buffer.concat([Buffer.from(start, 'latin1'), tail])
        expect(parseProxyHeader(bytes, all)).toBeDefined()
      }),
    )
  })
})
