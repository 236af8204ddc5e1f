import { expect, it } from 'vitest'
import { decimalDollars } from './picodollars.ts'

it.each([
  [0n, '0'],
  [1n, '0.000000000001'],
  [9_030_000_000n, '0.00903'],
  [1_000_000_000_000n, '1'],
  [-1_500_000_000_000n, '-1.5'],
  [123_456_789_012_345_678_901_234_567_890n, '123456789012345678.90123456789'],
])('writes %d picodollars as %s dollars', (amount, text) => {
  expect(decimalDollars(amount)).toBe(text)
})
