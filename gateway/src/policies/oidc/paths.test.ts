import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkCallbackPath, createPublicUrls, isPath, loginPaths, returnTarget } from './paths.ts'

const paths = loginPaths({})
const request = { method: 'GET', host: 'gw.test', path: '/', query: '', version: '1.1', headers: {} }

describe('the target of the return', () => {
  it.each([
    '/',
    '/app',
    '/app/?q=1&r=//x',
    '/app?next=https://evil.test',
    '/a%20b',
    '/app/%C3%BC',
    '/a?b=%5c',
  ])('is %s as requested', (target) => expect(returnTarget(target, paths)).toBe(target))

  it.each([
    '',
    'app',
    '//evil.test',
    '/\\evil.test',
    '\\\\evil.test',
    '/%2f%2fevil.test/..',
    '/%2fevil.test',
    '/%5cevil.test',
    '/%252fevil.test',
    '/\tevil',
    '/a\nb',
    '/%0d%0aset-cookie:x',
    '/%zz',
    'https://evil.test/',
    'javascript:alert(1)',
    `/${'a'.repeat(3_000)}`,
    '/oauth/callback?code=1',
    '/oauth/callback/logout',
  ])('is / instead of %j', (target) => expect(returnTarget(target, paths)).toBe('/'))

  it('never leads a browser to another origin', () => {
    const part = fc.constantFrom(
      '/',
      '\\',
      '%2f',
      '%5c',
      '%25',
      '.',
      '..',
      'evil.test',
      '@',
      ':',
      '?',
      '#',
      ' ',
      '\t',
      'a',
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const target = returnTarget(`/${parts.join('')}`, paths)
        expect(new URL(target, 'https://gw.test').origin).toBe('https://gw.test')
        const decoded = decodeURIComponent(target.split('?')[0] ?? '')
        expect(new URL(decoded, 'https://gw.test').origin).toBe('https://gw.test')
      }),
    )
  })
})

describe('addresses of a login', () => {
  it('are those of the request without a configured one', () => {
    const urls = createPublicUrls({})
    expect(urls.redirectUri({ ...request, scheme: 'https' })).toBe('https://gw.test/oauth/callback')
    expect(urls.isSecure({ ...request, scheme: 'https' })).toBe(true)
    expect(urls.isSecure({ ...request, scheme: 'http' })).toBe(false)
  })

  it('are the configured ones, whatever the request', () => {
    const urls = createPublicUrls({ redirectURI: 'https://public.test/cb' })
    const plain = { ...request, scheme: 'http' as const }
    expect([urls.redirectUri(plain), urls.isSecure(plain), urls.absolute('/bye', plain)]).toEqual([
      'https://public.test/cb',
      true,
      'https://public.test/bye',
    ])
    expect(loginPaths({ redirectURI: 'https://public.test/cb' })).toEqual({
      callback: '/cb',
      logout: '/cb/logout',
    })
  })

  it.each([
    ['https://gw.test/cb', undefined],
    ['/cb', undefined],
    ['cb', 'address'],
    ['//gw.test/cb', 'address'],
    ['https://gw.test/', 'other than /'],
    ['https://gw.test', 'other than /'],
    ['https://gw.test/cb?x=1', 'query'],
    ['https://gw.test/cb#x', 'query'],
    ['https://a:b@gw.test/cb', 'user'],
    ['https://gw.test/a/../cb', 'normalised'],
    ['https://gw.test/a%2fcb', 'normalised'],
    ['https://gw.test/cb/', 'normalised'],
    ['ftp://gw.test/cb', 'address'],
  ])('are checked: %s', (uri, mistake) => {
    if (mistake === undefined) expect(checkCallbackPath(uri)).toBeUndefined()
    else expect(checkCallbackPath(uri)).toContain(mistake)
    expect(isPath(uri)).toBe(uri === '/cb')
  })
})
