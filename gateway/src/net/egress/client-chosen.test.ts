import { networkInterfaces } from 'node:os'
import { describe, expect, it } from 'vitest'
import { parseCidr } from '../../lib/address/cidr.ts'
import { compileClientChosenPolicy } from './client-chosen.ts'
import { anywhere } from './egress.ts'

function policy(...ranges: string[]) {
  const allowed = ranges.flatMap((text) => parseCidr(text) ?? [])
  return compileClientChosenPolicy(anywhere, { allowed, isOwnPort: (port) => port === 3000 })
}

function refusal(address: string, { port = 443, ranges = [] }: { port?: number; ranges?: string[] } = {}) {
  return policy(...ranges).refuses({ host: 'a.test', address, port })
}

describe('destinations that clients choose', () => {
  it.each(['8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8'])('permit %s', (address) => {
    expect(refusal(address)).toBeUndefined()
  })

  it.each([
    ...[
      '127.0.0.1',
      '10.0.0.1',
      '172.16.0.1',
      '192.168.0.1',
      '100.64.0.1',
      '0.0.0.0',
      '224.0.0.1',
      '255.255.255.255',
    ],
    ...['::1', '::', 'fd00::1', 'ff02::1', '::ffff:10.0.0.1', '64:ff9b::a00:1', '2002:a00:1::'],
  ])('refuse %s', (address) => {
    expect(refusal(address)).toContain('is not a public address')
  })

  it.each(['169.254.169.254', 'fe80::1', 'fd00:ec2::254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe'])(
    'refuse the metadata address %s in an allowed range',
    (address) => {
      expect(refusal(address, { ranges: ['0.0.0.0/0', '::/0'] })).toContain('metadata')
    },
  )

  it('permit allowed ranges', () => {
    expect(refusal('10.1.2.3', { ranges: ['10.1.0.0/16'] })).toBeUndefined()
    expect(refusal('10.2.2.3', { ranges: ['10.1.0.0/16'] })).toBeDefined()
  })

  it('refuse listeners of the gateway on this machine', () => {
    const ranges = ['0.0.0.0/0', '::/0']
    const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
    for (const address of ['127.0.0.1', '127.1.2.3', '0.0.0.0', '::1', ...own.map((one) => one.address)]) {
      expect(refusal(address, { port: 3000, ranges })).toMatch(/listener of this gateway|metadata/)
    }
    expect(refusal('127.0.0.1', { port: 3001, ranges })).toBeUndefined()
    expect(refusal('8.8.8.8', { port: 3000 })).toBeUndefined()
  })

  it('apply the policy of their source', () => {
    const base = { key: 'base', refuses: () => 'no' }
    const strict = compileClientChosenPolicy(base, { allowed: [], isOwnPort: () => false })
    expect(strict.refuses({ host: 'a', address: '8.8.8.8', port: 1 })).toBe('no')
    expect(strict.key).not.toBe(policy().key)
  })
})
