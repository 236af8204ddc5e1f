import { describe, expect, it } from 'vitest'
import { createEndings, type Ending, sealedLifetimeMs } from './endings.ts'

function fixture(maxIds = 10) {
  let timeMs = 1_000_000
  const clock = { now: () => timeMs, monotonic: () => timeMs }
  const create = () => createEndings(clock, maxIds)
  return {
    create,
    advance(ms: number) {
      timeMs += ms
    },
  }
}

const ending = (fingerprint: string, more: Partial<Ending> = {}): Ending => ({
  fingerprint,
  owner: 'alice',
  reason: 'it was ended',
  sealed: true,
  ...more,
})

describe('the record of ended sessions', () => {
  it('has the first reason, for the owner only', () => {
    const endings = fixture().create()
    endings.record(ending('a'))
    endings.record(ending('a', { reason: 'another reason' }))
    expect([endings.reasonOf('a', 'alice'), endings.reasonOf('a', 'bob')]).toEqual([
      'it was ended',
      undefined,
    ])
  })

  it('has ids of sealed sessions until the end of their lifetime', () => {
    const { create, advance } = fixture()
    const endings = create()
    endings.record(ending('a'))
    endings.record(ending('b', { sealed: false }))
    expect([endings.has('a', 1), endings.has('b', 1), endings.size]).toEqual([true, false, 1])
    advance(sealedLifetimeMs)
    endings.sweep()
    expect([endings.has('a', 1), endings.size]).toEqual([false, 0])
  })

  it('continues in another record as plain data', () => {
    const { create, advance } = fixture(2)
    const endings = create()
    for (const fingerprint of ['a', 'b', 'c']) {
      endings.record(ending(fingerprint))
      advance(1_000)
    }
    const other = create()
    other.record(ending('d', { owner: 'bob' }))
    other.restore(structuredClone(endings.snapshot()))
    expect(['a', 'b', 'c', 'd'].map((fingerprint) => other.has(fingerprint, 0))).toEqual(Array(4).fill(true))
    expect(other.size).toBe(2)
    expect([other.reasonOf('c', 'alice'), other.reasonOf('d', 'bob')]).toEqual([
      'it was ended',
      'it was ended',
    ])
    expect(other.has('e', 1_010_000)).toBe(false)
  })
})
