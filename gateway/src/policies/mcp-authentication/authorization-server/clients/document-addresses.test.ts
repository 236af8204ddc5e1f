import { describe, expect, it } from 'vitest'
import { compileDocumentAddresses } from './document-addresses.ts'

const isAllowed = compileDocumentAddresses(['10.1.0.0/16', 'fd12::/16', '169.254.0.0/16', '127.0.0.1'])

describe('addresses of client documents', () => {
  it.each([
    '93.184.216.34',
    '8.8.8.8',
    '2606:4700::1111',
    '::ffff:8.8.8.8',
    '10.1.2.3',
    'fd12::1',
    '127.0.0.1',
  ])('may be %s', (address) => {
    expect(isAllowed(address)).toBe(true)
  })

  it.each([
    ...['127.0.0.2', '10.0.0.1', '172.16.5.5', '192.168.1.1', '100.64.0.1', '0.0.0.0', '255.255.255.255'],
    ...['169.254.169.254', '168.63.129.16', '100.100.100.200', '192.0.0.192', '224.0.0.1', '198.18.0.1'],
    ...['::', '::1', '::ffff:127.0.0.2', '::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '::169.254.169.254'],
    ...['64:ff9b::169.254.169.254', '64:ff9b:1::1', '2002:a9fe:a9fe::1', '2001:0:4136:e378::1', 'fe80::1'],
    ...['fd00:ec2::254', 'fc00::1', 'ff02::1', '2001:db8::1', 'localhost', '', '1.2.3', '0x7f.0.0.1'],
  ])('may not be %s', (address) => {
    expect(isAllowed(address)).toBe(false)
  })
})
