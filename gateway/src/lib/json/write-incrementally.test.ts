import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { writeJsonIncrementally } from './write-incrementally.ts'

const never = () => undefined

describe('writeJsonIncrementally', () => {
  it('writes what JSON.stringify writes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        expect(String(await writeJsonIncrementally(value, never))).toBe(JSON.stringify(value))
      }),
    )
  })

  it('leaves out members that are undefined', async () => {
    const value = { a: undefined, b: { c: undefined }, d: [undefined, { e: undefined }] }
    expect(String(await writeJsonIncrementally(value, never))).toBe(JSON.stringify(value))
  })

  it('takes any iterable for a list, and rests while it writes it', async () => {
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
