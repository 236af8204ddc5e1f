import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readSessionKey } from '../../../lib/session-key.ts'
import { createSessionIds, digestOwner } from './session-id.ts'

const key = Buffer.alloc(32, 7)
const ids = createSessionIds(key, 'mcp')
const session = { createdAt: 5, owner: digestOwner('alice'), home: 0, state: { s: 'upstream-1' } }

function sealed(state: typeof session = session): string {
  const id = ids.seal(state)
  if (id === undefined) throw new Error('too long')
  return id
}

const changedAt = (id: string, index: number, character: string) =>
  id.slice(0, index) + character + id.slice(index + 1)

describe('a sealed session id', () => {
  it('contains the session for any holder of the key', () => {
    expect(createSessionIds(Buffer.alloc(32, 7), 'mcp').unseal(sealed())).toEqual(session)
  })

  it('carries any state', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), fc.nat(), (state, createdAt) => {
        const entries = JSON.parse(JSON.stringify(state))
        const id = ids.seal({ createdAt, owner: 'o', home: 3, state: entries })
        expect(id && ids.unseal(id)).toEqual({ createdAt, owner: 'o', home: 3, state: entries })
      }),
      { numRuns: 50 },
    )
  })

  it('is visible ASCII, as a header must be', () => {
    expect(sealed()).toMatch(/^[\x21-\x7e]+$/)
  })

  it('reveals nothing of its content', () => {
    const text = Buffer.from(sealed(), 'base64url').toString('latin1')
    expect(text).not.toContain('upstream-1')
    expect(text).not.toContain(session.owner)
  })

  it('is worth nothing once any character is changed', () => {
    const id = sealed()
    fc.assert(
      fc.property(fc.nat(id.length - 1), fc.constantFrom(...'ABCabc019-_+/=. '), (index, character) => {
        const changed = changedAt(id, index, character)
        if (changed !== id) expect(ids.unseal(changed)).toBeUndefined()
      }),
    )
  })

  it('is worth nothing when cut or extended', () => {
    const id = sealed()
    for (const text of ['', id.slice(0, -1), id.slice(1), `${id}A`, `${id}=`, id.slice(0, 20)]) {
      expect(ids.unseal(text)).toBeUndefined()
    }
  })

  it('is not believed when it is no id at all', () => {
    fc.assert(fc.property(fc.string(), (text) => void expect(ids.unseal(text)).toBeUndefined()))
  })

  it('opens neither with another key nor at another place', () => {
    expect(createSessionIds(Buffer.alloc(32, 8), 'mcp').unseal(sealed())).toBeUndefined()
    expect(createSessionIds(key, 'routes/a').unseal(sealed())).toBeUndefined()
  })

  it('is not made where it would not fit into a header', () => {
    expect(ids.seal({ ...session, state: { s: 'x'.repeat(5_000) } })).toBeUndefined()
  })

  it('differs from every other, also for the same session, and so does its fingerprint', () => {
    const [one, other] = [sealed(), sealed()]
    expect(one).not.toBe(other)
    expect(ids.fingerprint(one)).not.toBe(ids.fingerprint(other))
  })
})

describe('a session key', () => {
  it('is 64 hexadecimal digits', () => {
    expect(readSessionKey('aB'.repeat(32))).toHaveLength(32)
    for (const text of ['', 'a'.repeat(63), 'a'.repeat(65), 'g'.repeat(64), ` ${'a'.repeat(64)}`]) {
      expect(readSessionKey(text)).toBeUndefined()
    }
  })
})
