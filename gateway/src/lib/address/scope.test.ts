import { describe, expect, it } from 'vitest'
import { addressScope } from './scope.ts'

describe('addressScope', () => {
  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.9.9.9', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['10.1.2.3', 'private'],
    ['172.17.0.1', 'private'],
    ['172.32.0.1', 'public'],
    ['192.168.0.9', 'private'],
    ['169.254.169.254', 'private'],
    ['100.64.0.1', 'private'],
    ['fd12::1', 'private'],
    ['fe80::1', 'private'],
    ['fe80::1%eth0', 'private'],
    ['', 'private'],
    ['203.0.113.9', 'public'],
    ['2001:db8::1', 'public'],
  ])('of %s is %s', (address, scope) => {
    expect(addressScope(address)).toBe(scope)
  })
})
