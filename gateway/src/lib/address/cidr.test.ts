import { BlockList, isIPv4, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Cidr, compileCidrs, parseAddress, parseCidr, plainAddress } from './cidr.ts'

function ranges(...texts: string[]): Cidr[] {
  return texts.map((text) => {
    const range = parseCidr(text)
    if (!range) throw new Error(`no range: ${text}`)
    return range
  })
}

describe('parseCidr', () => {
  it.each([
    '10.0.0.0/8',
    '10.0.0.1',
    '0.0.0.0/0',
    '::/0',
    'fd00::/8',
    '::1',
    '::ffff:10.0.0.0/104',
    'fe80::1/128',
  ])('reads %s', (text) => {
    expect(parseCidr(text)).toBeDefined()
  })

  it.each([
    '',
    '10',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '010.0.0.1',
    '::/129',
    ':::',
    'a.b',
    '10.0.0.0/8 ',
    'fe80::1%eth0',
  ])('refuses %j', (text) => {
    expect(parseCidr(text)).toBeUndefined()
  })

  it('reads a mapped range as an IPv4 range', () => {
    expect(parseCidr('::ffff:10.0.0.0/104')).toEqual(parseCidr('10.0.0.0/8'))
  })
})

describe('compileCidrs', () => {
  it.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.1.2.3/8', '10.9.9.9', true],
    ['10.0.0.0/8', '::ffff:10.0.0.1', true],
    ['10.0.0.0/8', '::FFFF:a00:1', true],
    ['0.0.0.0/0', '255.255.255.255', true],
    ['0.0.0.0/0', '::1', false],
    ['128.0.0.0/1', '200.0.0.1', true],
    ['::/0', '2001:db8::1', true],
    ['fd00::/7', 'fe00::1', false],
    ['fc00::/7', 'fd00::1', true],
    ['::1', '0:0:0:0:0:0:0:1', true],
    ['fe80::/10', 'fe80::1%eth0', true],
    ['0.0.0.0/0', '', false],
    ['0.0.0.0/0', '1.2.3', false],
    ['0.0.0.0/0', '1.2.3.4.5', false],
    ['0.0.0.0/0', '1.2.3.256', false],
    ['0.0.0.0/0', '01.2.3.4', false],
    ['0.0.0.0/0', '1..3.4', false],
    ['::/0', ':::', false],
    ['::/0', 'unknown', false],
  ])('asks %s about %s: %s', (range, address, inside) => {
    expect(compileCidrs(ranges(range))(address)).toBe(inside)
  })

  it('agrees with the platform', () => {
    const four = fc.ipV4()
    const six = fc
      .ipV6()
      .filter((address) => isIPv6(address) && !address.includes('.') && !/ffff/i.test(address))
    fc.assert(
      fc.property(
        four,
        fc.integer({ min: 0, max: 32 }),
        four,
        six,
        fc.integer({ min: 0, max: 128 }),
        six,
        (...values) => {
          const [network, bits, address, network6, bits6, address6] = values
          const platform = new BlockList()
          platform.addSubnet(network, bits, 'ipv4')
          expect(compileCidrs(ranges(`${network}/${bits}`))(address)).toBe(platform.check(address, 'ipv4'))
          const platform6 = new BlockList()
          platform6.addSubnet(network6, bits6, 'ipv6')
          expect(compileCidrs(ranges(`${network6}/${bits6}`))(address6)).toBe(
            platform6.check(address6, 'ipv6'),
          )
          expect(compileCidrs(ranges(`${address6}/${bits6}`))(address6)).toBe(true)
        },
      ),
    )
  })
})

describe('plainAddress', () => {
  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['0:0:0:0:0:ffff:a00:1', '10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['::1', '::1'],
    ['1::ffff:a00:1', '1::ffff:a00:1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['', ''],
  ])('shows %j as %j', (address, plain) => {
    expect(plainAddress(address)).toBe(plain)
  })
})

describe('parseAddress', () => {
  it.each([
    ['1.2.3.4', '1.2.3.4'],
    ['1.2.3.4:80', '1.2.3.4'],
    ['::1', '::1'],
    ['[::1]', '::1'],
    ['[::1]:80', '::1'],
    ['[::ffff:1.2.3.4]:80', '1.2.3.4'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
  ])('reads %j as %j', (text, address) => {
    expect(parseAddress(text)).toBe(address)
  })

  it.each([
    '',
    'unknown',
    '_hidden',
    '1.2.3',
    '1.2.3.4:',
    '1.2.3.4:x',
    '[::1',
    '[::1]x',
    '[1.2.3.4]x',
    'fe80::1%lo',
    '1.2.3.4 ',
  ])('refuses %j', (text) => {
    expect(parseAddress(text)).toBeUndefined()
  })

  it('returns an address or undefined', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6()), (text) => {
        const address = parseAddress(text)
        if (address !== undefined) expect(isIPv4(address) || isIPv6(address)).toBe(true)
      }),
    )
  })
})
