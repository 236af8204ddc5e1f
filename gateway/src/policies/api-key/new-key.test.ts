import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createNewKey } from './new-key.ts'

describe('createNewKey', () => {
  it('returns tg- and 40 letters and digits, each time others', () => {
    const keys = Array.from({ length: 200 }, () => createNewKey(randomBytes))
    for (const key of keys) expect(key).toMatch(/^tg-[A-Za-z0-9]{40}$/)
    expect(new Set(keys).size).toBe(200)
  })

  it('skips bytes that would favour some characters', () => {
    const batches = [new Uint8Array(40).fill(255), new Uint8Array(40).fill(61)]
    expect(createNewKey(() => batches.shift() ?? new Uint8Array(40).fill(0))).toBe(`tg-${'9'.repeat(40)}`)
  })
})
