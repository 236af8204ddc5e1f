import { describe, expect, it } from 'vitest'
import { describeConnection, withoutTls } from './connection.ts'

describe('the scope of a peer', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1', 'loopback'],
    ['::ffff:127.0.0.1', '::ffff:127.0.0.1', 'loopback'],
    ['10.0.0.1', '10.0.0.2', 'private'],
    ['203.0.113.7', '203.0.113.8', 'public'],
    ['203.0.113.7', '203.0.113.7', 'loopback'],
    ['::ffff:203.0.113.7', '203.0.113.7', 'loopback'],
    ['2001:db8:1:2::7', '2001:db8:1:2::7', 'loopback'],
    ['2001:db8:1:2::7', '2001:db8:1:2:9::8', 'private'],
    ['2001:db8:1:3::7', '2001:db8:1:2::8', 'public'],
    ['fe80::1', 'fe80::1', 'loopback'],
    [undefined, '127.0.0.1', 'private'],
  ])('of %s that connects to %s is %s', (remoteAddress, localAddress, scope) => {
    const endpoints = { remoteAddress, remotePort: 1, localAddress, localPort: 2 }
    expect(describeConnection(endpoints, withoutTls).peerScope).toBe(scope)
  })
})
