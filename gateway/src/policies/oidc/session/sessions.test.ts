import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { maxSessionLength } from './cookies.ts'
import { createSealing } from './sealing.ts'
import { createSessions, type SessionContent } from './sessions.ts'

const [old, fresh] = [randomBytes(32), randomBytes(32)]
const sealing = createSealing([old], 'session', 'policy')
const idToken = `e30.${Buffer.from('{"sub":"ada","big":9007199254740993,"groups":["a"]}').toString('base64url')}.c2ln`

const content: SessionContent = {
  id: 'login',
  generation: 0,
  claims: { sub: 'ada', big: 9007199254740993n, groups: ['a'], email: 'ada@example.com' },
  idToken,
  refreshToken: 'refresh',
  tokens: { from: 1, until: 2 },
  endsAt: 100_000,
}

function sessionsAt(time: { now: number }, own = sealing) {
  return createSessions(own, 1_000, () => time.now)
}

describe('sessions', () => {
  it('are read as written, with exact integers', () => {
    const time = { now: 10 }
    const text = sessionsAt(time).seal(content) ?? ''
    expect(sessionsAt(time).open(text)).toEqual({ ...content, sealedAt: 10, idleUntil: 1_010 })
    const { idToken: _, refreshToken: __, tokens: ___, ...few } = content
    const small = { ...few, idToken: undefined, refreshToken: undefined, tokens: undefined }
    expect(sessionsAt(time).open(sessionsAt(time).seal(small) ?? '')).toMatchObject(small)
  })

  it('end after their idle time and at their absolute end', () => {
    const time = { now: 0 }
    const sessions = sessionsAt(time)
    const text = sessions.seal(content) ?? ''
    time.now = 999
    expect(sessions.open(text)).toBeDefined()
    time.now = 1_000
    expect([sessions.open(text), sessions.open(text)]).toEqual([undefined, undefined])
    time.now = 99_500
    const late = sessions.seal(content) ?? ''
    expect(sessions.open(late)?.idleUntil).toBe(100_000)
    time.now = 100_000
    expect(sessions.open(late)).toBeUndefined()
  })

  it('have claims that changed since the ID token, without those about the token', () => {
    const time = { now: 0 }
    const token = `e30.${Buffer.from('{"sub":"ada","nonce":"n","groups":["a"]}').toString('base64url')}.c2ln`
    const claims = { sub: 'ada', groups: [] }
    const sessions = sessionsAt(time)
    const text = sessions.seal({ ...content, claims, idToken: token }) ?? ''
    expect(sessionsAt(time).open(text)?.claims).toEqual(claims)
  })

  it('omit the ID token before they are refused as too large', () => {
    const time = { now: 0 }
    const sessions = sessionsAt(time)
    const claims = { ...content.claims, text: 'x'.repeat(5_000) }
    const text = sessions.seal({ ...content, claims, idToken: `${idToken}${'c'.repeat(4_000)}` }) ?? ''
    expect(text.length).toBeLessThanOrEqual(maxSessionLength)
    expect(sessions.open(text)).toMatchObject({ claims, idToken: undefined })
    expect(sessions.seal({ ...content, refreshToken: 'x'.repeat(9_000) })).toBeUndefined()
  })

  it('are valid for their secret, purpose and policy only', () => {
    const time = { now: 0 }
    const text = sessionsAt(time).seal(content) ?? ''
    const opened = (own: typeof sealing) => sessionsAt(time, own).open(text) !== undefined
    expect(opened(createSealing([fresh, old], 'session', 'policy'))).toBe(true)
    expect(opened(createSealing([fresh], 'session', 'policy'))).toBe(false)
    expect(opened(createSealing([old], 'login', 'policy'))).toBe(false)
    expect(opened(createSealing([old], 'session', 'other'))).toBe(false)
  })
})
