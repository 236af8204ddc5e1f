import { describe, expect, it } from 'vitest'
import { mergeTexts } from './merge-texts.ts'

const lines = (...all: string[]) => all.map((line) => `${line}\n`).join('')
const base = lines('a', 'b', 'c', 'd', 'e', 'f')

describe('mergeTexts', () => {
  it('has the changes of both', () => {
    const mine = lines('a', 'B', 'c', 'd', 'e', 'f')
    const theirs = lines('a', 'b', 'c', 'd', 'e', 'f', 'g')
    expect(mergeTexts(base, mine, theirs)).toBe(lines('a', 'B', 'c', 'd', 'e', 'f', 'g'))
    expect(mergeTexts(base, theirs, mine)).toBe(lines('a', 'B', 'c', 'd', 'e', 'f', 'g'))
    expect(mergeTexts(base, lines('b', 'c', 'd', 'e', 'f'), lines('a', 'b', 'c', 'd', 'e'))).toBe(
      lines('b', 'c', 'd', 'e'),
    )
  })

  it('is undefined for changes of the same or of adjacent lines', () => {
    expect(
      mergeTexts(base, lines('a', 'X', 'c', 'd', 'e', 'f'), lines('a', 'Y', 'c', 'd', 'e', 'f')),
    ).toBeUndefined()
    expect(
      mergeTexts(base, lines('a', 'X', 'c', 'd', 'e', 'f'), lines('a', 'b', 'Y', 'd', 'e', 'f')),
    ).toBeUndefined()
  })

  it('accepts the same change twice', () => {
    const both = lines('a', 'X', 'c', 'd', 'e', 'f')
    expect(mergeTexts(base, both, both)).toBe(both)
    expect(mergeTexts(base, lines('a', 'X', 'c', 'd', 'e', 'F'), both)).toBe(
      lines('a', 'X', 'c', 'd', 'e', 'F'),
    )
  })

  it('contains each change, for random edits of different regions', () => {
    let seed = 11
    const random = (limit: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed % limit
    }
    for (let run = 0; run < 300; run++) {
      const all = Array.from({ length: 20 }, (_, at) => `line ${at}`)
      const mine = [...all]
      const theirs = [...all]
      mine.splice(random(6), random(3), `mine ${run}`)
      theirs.splice(12 + random(6), random(3), `theirs ${run}`)
      const merged = mergeTexts(lines(...all), lines(...mine), lines(...theirs))
      expect(merged).toContain(`mine ${run}`)
      expect(merged).toContain(`theirs ${run}`)
      const expected = [
        ...mine.slice(0, mine.indexOf('line 9') + 1),
        ...theirs.slice(theirs.indexOf('line 9') + 1),
      ]
      expect(merged).toBe(lines(...expected))
    }
  })
})
