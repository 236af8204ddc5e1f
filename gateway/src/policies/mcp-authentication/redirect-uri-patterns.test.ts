import { describe, expect, it } from 'vitest'
import { compileRedirectUriPatterns, isRedirectUriPattern } from './redirect-uri-patterns.ts'

describe('redirect URI patterns', () => {
  it.each([
    ['https://chat.example.com/cb', 'https://chat.example.com/cb'],
    ['https://chat.example.com/cb', 'https://CHAT.example.com:443/cb'],
    ['http://localhost:*/callback', 'http://localhost:33418/callback'],
    ['http://localhost:*/callback', 'http://localhost/callback'],
    ['http://[::1]:*/callback', 'http://[::1]:5000/callback'],
    ['http://127.0.0.1:*', 'http://127.0.0.1:1234'],
    ['https://chat.example.com/apps/*', 'https://chat.example.com/apps/1/cb?x=y'],
    ['http://localhost:*/*', 'http://localhost:1/any'],
    ['com.example.app:/cb', 'com.example.app:/cb'],
  ])('%s matches %s', (pattern, uri) => {
    expect(compileRedirectUriPatterns([pattern])(uri)).toBe(true)
  })

  it.each([
    ['https://chat.example.com/cb', 'https://chat.example.com/cb/more'],
    ['https://chat.example.com/cb', 'https://chat.example.com/CB'],
    ['https://chat.example.com/cb', 'http://chat.example.com/cb'],
    ['https://chat.example.com/cb', 'https://chat.example.com:444/cb'],
    ['https://chat.example.com/cb', 'https://chat.example.com@evil.test/cb'],
    ['https://chat.example.com/cb', 'https://user@chat.example.com/cb'],
    ['https://chat.example.com/cb', 'https://chat.example.com/cb#x'],
    ['https://chat.example.com/cb', 'https:\\\\chat.example.com/cb'],
    ['https://chat.example.com/apps/*', 'https://chat.example.com/apps/../admin'],
    ['https://chat.example.com/apps/*', 'https://chat.example.com/apps/%2e%2e/admin'],
    ['https://chat.example.com/apps/*', 'https://chat.example.com.evil.test/apps/1'],
    ['http://localhost:*/callback', 'http://localhost:1@evil.test/callback'],
    ['http://localhost:*/callback', 'http://localhost.evil.test:1/callback'],
    ['http://localhost:*/callback', 'javascript:alert(1)'],
    ['http://localhost:*/callback', 'nonsense'],
  ])('%s does not match %s', (pattern, uri) => {
    expect(compileRedirectUriPatterns([pattern])(uri)).toBe(false)
  })

  it.each([
    '*',
    'https://*',
    'https://*.example.com/cb',
    'https://chat.example.com*',
    'https://chat.example.com/*/cb',
    'https://chat.example.com/cb#x',
    '/relative',
    '',
  ])('reject the pattern %s', (pattern) => {
    expect(isRedirectUriPattern(pattern)).toBe(false)
  })
})
