import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { writeJsonIncrementally } from './write-incrementally.ts'

const never = () => undefined

describe('writeJsonIncrementally', () => {
  it('equals JSON.stringify', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        expect(String(await writeJsonIncrementally(value, never))).toBe(JSON.stringify(value))
      }),
    )
  })

  it('omits undefined members', async () => {
    const value = { a: undefined, b: { c: undefined }, d: [undefined, { e: undefined }] }
    expect(String(await writeJsonIncrementally(value, never))).toBe(JSON.stringify(value))
  })

  it('writes any iterable as a list, and yields meanwhile', async () => {
    let rests = 0
    const items = function* () {
      for (let index = 0; index < 20_000; index++) yield { index, text: 'é' }
    }
    const bytes = await writeJsonIncrementally({ items: items() }, () => {
      rests += 1
      return rests % 1_000 === 0 ? Promise.resolve() : undefined
    })
    expect(rests).toBeGreaterThan(20_000)
    expect(JSON.parse(String(bytes))).toEqual({ items: [...items()] })
  })
})
