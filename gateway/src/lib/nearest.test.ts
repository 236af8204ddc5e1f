import { expect, it } from 'vitest'
import { nearest } from './nearest.ts'

const keys = ['models', 'model', 'port', 'policies', 'allowOrigins', 'apiKey']

it.each([
  ['modles', 'models'],
  ['mdoels', 'models'],
  ['prot', 'port'],
  ['APIKEY', 'apiKey'],
  ['allow_origins', 'allowOrigins'],
  ['polices', 'policies'],
  ['modl', 'model'],
])('returns for %s the candidate %s', (word, expected) => {
  expect(nearest(word, keys)).toBe(expected)
})

it.each(['', 'x', 'zebra', 'gateways', 'x'.repeat(100_000)])('returns no candidate for "%.20s"', (word) => {
  expect(nearest(word, keys)).toBeUndefined()
})
