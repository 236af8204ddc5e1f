import { describe, expect, it } from 'vitest'
import { isRegisteredRedirect, readRedirectTarget, redirectWith } from './redirect-targets.ts'

describe('a redirect URI', () => {
  it.each([
    ['https://chat.test/cb', 'web', 'chat.test'],
    ['https://chat.test:8443/cb?x=1', 'web', 'chat.test:8443'],
    ['http://127.0.0.1:3334/cb', 'loopback', '127.0.0.1:3334'],
    ['http://[::1]:1/cb', 'loopback', '[::1]:1'],
    ['http://localhost', 'loopback', 'localhost'],
    ['cursor://anysphere.cursor/cb', 'app', 'cursor:'],
    ['com.example.app:/cb', 'app', 'com.example.app:'],
  ])('may be %s', (uri, kind, label) => {
    expect(readRedirectTarget(uri)).toEqual({ kind, label })
  })

  it.each([
    ...['http://chat.test/cb', 'https://chat.test/cb#x', 'https://user@chat.test/', 'https://u:p@chat.test/'],
    ...['javascript:alert(1)', 'JAVASCRIPT:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd'],
    ...['blob:https://x.test/1', 'about:blank', 'ws://x.test/', 'ms-msdt:/x', 'search-ms:x', 'intent://x'],
    ...[
      'https:chat.test',
      'https:/chat.test',
      'https://chat.test\\@evil.test/',
      'https://chat.test/\r\nx',
      ' https://a.test/',
    ],
    ...[
      'http://localhost.evil.test/cb',
      'http://127.0.0.1.evil.test/',
      'http://localhost@evil.test/',
      'http://localhost:80:90/',
    ],
    ...['/cb', '', 'nonsense', `https://chat.test/${'x'.repeat(600)}`, 'https://chat.test/ü'],
  ])('may not be %j', (uri) => {
    expect(readRedirectTarget(uri)).toBeUndefined()
  })

  it.each([
    ['http://127.0.0.1:1/cb', 'http://127.0.0.1:50000/cb'],
    ['http://localhost/cb', 'http://localhost:50000/cb'],
    ['http://[::1]:9/cb?a=1', 'http://[::1]/cb?a=1'],
    ['https://chat.test/cb', 'https://chat.test/cb'],
  ])('registered as %s may be used as %s', (registered, used) => {
    expect(isRegisteredRedirect(['https://other.test/', registered], used)).toBe(true)
  })

  it.each([
    ['https://chat.test/cb', 'https://chat.test:444/cb'],
    ['https://chat.test/cb', 'https://chat.test/cb/'],
    ['https://chat.test/cb', 'https://chat.test/cb?x=1'],
    ['https://chat.test/cb', 'https://chat.test/CB'],
    ['https://chat.test/cb', 'https://chat.test/a/../cb'],
    ['http://127.0.0.1:1/cb', 'http://localhost:1/cb'],
    ['http://127.0.0.1:1/cb', 'http://127.0.0.1:1/cb/evil'],
    ['http://127.0.0.1:1/cb', 'http://127.0.0.1:1@evil.test/cb'],
    ['http://127.0.0.1:1/cb', 'http://127.0.0.1.evil.test/cb'],
    ['http://127.0.0.1:1/cb', 'https://127.0.0.1:1/cb'],
    ['cursor://a/cb', 'cursor://b/cb'],
  ])('registered as %s may not be used as %s', (registered, used) => {
    expect(isRegisteredRedirect([registered], used)).toBe(false)
  })

  it('retains its query when parameters are added', () => {
    expect(redirectWith('https://a.test/cb?x=1', { state: 'a b&c', error: undefined })).toBe(
      'https://a.test/cb?x=1&state=a+b%26c',
    )
    expect(redirectWith('com.app:/cb', { code: 'c' })).toBe('com.app:/cb?code=c')
  })
})
