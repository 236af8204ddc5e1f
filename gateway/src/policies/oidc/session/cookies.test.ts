import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLoginCookies, maxSessionLength, removeLoginCookies } from './cookies.ts'

const cookies = createLoginCookies('policy')

/** The cookie header of a browser after lines of `set-cookie`. */
function browserAfter(lines: readonly string[], before = new Map<string, string>()): Map<string, string> {
  const jar = new Map(before)
  for (const line of lines) {
    const [pair = ''] = line.split(';')
    const equals = pair.indexOf('=')
    if (line.includes('Max-Age=0')) jar.delete(pair.slice(0, equals))
    else jar.set(pair.slice(0, equals), pair.slice(equals + 1))
  }
  return jar
}

function headersOf(jar: ReadonlyMap<string, string>) {
  return { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') }
}

const at = (headers: Record<string, string>, isSecure = false) => ({ headers, isSecure, maxAgeSeconds: 60 })

describe('the cookies of a session', () => {
  it('contain a session of any permitted length, also after another one', () => {
    const text = fc.integer({ min: 1, max: maxSessionLength }).map((length) => 'a'.repeat(length))
    fc.assert(
      fc.property(text, text, fc.boolean(), (first, second, isSecure) => {
        const one = browserAfter(cookies.setSession(first, at({}, isSecure)))
        expect(cookies.session(at(headersOf(one), isSecure))).toBe(first)
        const lines = cookies.setSession(second, at(headersOf(one), isSecure))
        for (const line of lines) expect(line.length).toBeLessThan(4_096)
        const two = browserAfter(lines, one)
        expect(cookies.session(at(headersOf(two), isSecure))).toBe(second)
        expect(browserAfter(cookies.removeSession(at(headersOf(two), isSecure)), two).size).toBe(0)
      }),
    )
  })

  it('have the prefix of the host and Secure with HTTPS only', () => {
    const [line = ''] = cookies.setSession('x', at({}, true))
    expect(line).toMatch(/^__Host-tollgate-oidc-s-policy=1\.x; .*; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
    expect(cookies.setSession('x', at({}))[0]).toMatch(/^tollgate-oidc-s-policy=1\.x; .*; SameSite=Lax$/)
    // A page of the domain could set a cookie without the prefix.
    const injected = { cookie: 'tollgate-oidc-s-policy=1.x' }
    expect(cookies.session(at(injected, true))).toBeUndefined()
  })

  it.each([
    ['a missing part', 'tollgate-oidc-s-policy=2.x'],
    ['a count of 0', 'tollgate-oidc-s-policy=0.x'],
    ['a high count', 'tollgate-oidc-s-policy=9.x'],
    ['two with the name', 'tollgate-oidc-s-policy=1.x; tollgate-oidc-s-policy=1.y'],
    ['another policy', 'tollgate-oidc-s-other=1.x'],
  ])('are refused with %s', (_, cookie) => {
    expect(cookies.session(at({ cookie }))).toBeUndefined()
  })

  it('never reach an upstream', () => {
    const headers: Record<string, string> = {
      cookie: 'a=1; tollgate-oidc-s-policy=1.x;__Host-tollgate-oidc-t-p-1=y; b="2"; broken',
    }
    removeLoginCookies(headers)
    expect(headers).toEqual({ cookie: 'a=1; b="2"' })
    const only: Record<string, string> = { cookie: 'tollgate-oidc-s-policy=1.x' }
    removeLoginCookies(only)
    expect(only).toEqual({})
    const others = { cookie: 'a=1;broken' }
    removeLoginCookies(others)
    expect(others).toEqual({ cookie: 'a=1;broken' })
  })
})

describe('the cookies of logins in progress', () => {
  it('replace the oldest of many', () => {
    let jar = new Map<string, string>()
    for (let index = 10; index < 30; index += 1)
      jar = browserAfter(cookies.setLogin(`id${index}`, 'x', at(headersOf(jar))), jar)
    expect([...jar.keys()].sort()).toEqual(
      [22, 23, 24, 25, 26, 27, 28, 29].map((index) => `tollgate-oidc-t-policy-id${index}`),
    )
    expect(cookies.login('id29', at(headersOf(jar)))).toBe('x')
    expect(cookies.login('id10', at(headersOf(jar)))).toBeUndefined()
  })

  it('and the longest session fit into a request head', () => {
    let jar = browserAfter(cookies.setSession('a'.repeat(maxSessionLength), at({})))
    for (let index = 10; index < 30; index += 1)
      jar = browserAfter(cookies.setLogin(`id${index}`, 'x'.repeat(3_300), at(headersOf(jar))), jar)
    expect(cookies.login('id29', at(headersOf(jar)))).toBeDefined()
    expect(headersOf(jar).cookie.length).toBeLessThan(24 * 1_024)
  })
})
