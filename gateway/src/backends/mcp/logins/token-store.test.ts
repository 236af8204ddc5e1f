import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createLoginLinks } from './links.ts'
import { createTokenStore } from './token-store.ts'

const key = new Uint8Array(32).fill(7)

describe('a folder of tokens', () => {
  it('is readable with its keys only, in files of the owner', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-tokens-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const store = createTokenStore(join(folder, 'new'), key)
    await store.write('ada', { accessToken: 'canary' })
    await store.write('bob', { accessToken: 'other' })
    expect(await store.read('ada')).toEqual({ accessToken: 'canary' })
    const files = readdirSync(join(folder, 'new')).map((name) => join(folder, 'new', name))
    const contents = files.map((path) => readFileSync(path, 'utf8'))
    expect(contents.join()).not.toMatch(/canary|ada/)
    expect(files.map((path) => statSync(path).mode & 0o077)).toEqual([0, 0])

    const otherKey = createTokenStore(join(folder, 'new'), new Uint8Array(32))
    expect(await otherKey.read('ada')).toBeUndefined()
    const [one = '', two = ''] = files
    copyFileSync(one, two)
    expect([await store.read('ada'), await store.read('bob')]).toContain(undefined)
    await store.remove('ada')
    await store.remove('ada')
    expect(await store.read('ada')).toBeUndefined()
  })
})

describe('links of logins', () => {
  const user = { key: 'k', name: 'Ada' }

  it('are valid for ten minutes, at their redirect URI', () => {
    let now = 0
    const links = createLoginLinks(key, 'https://a.test/callback', () => now)
    const link = links.sealLink({ user, target: 't' })
    const elsewhere = createLoginLinks(key, 'https://b.test/callback', () => now)
    expect(links.readLink(link)).toEqual({ user, target: 't' })
    expect([elsewhere.readLink(link), links.readState(link)]).toEqual([undefined, undefined])
    now = 600_000
    expect(links.readLink(link)).toBeUndefined()
  })

  it('are refused after any change', () => {
    const links = createLoginLinks(key, 'https://a.test/callback', () => 0)
    const state = links.sealState({
      ...{ user, target: 't', verifier: 'v', browser: 'b', id: 'i' },
      origin: { issuer: 'https://auth.test', clientId: 'c' },
    })
    fc.assert(
      fc.property(fc.nat(state.length - 1), fc.constantFrom('A', '_', '%', ''), (at, other) => {
        const changed = state.slice(0, at) + other + state.slice(at + 1)
        expect(links.readState(changed) === undefined).toBe(changed !== state)
      }),
    )
  })
})
