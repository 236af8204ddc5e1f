import { expect, it } from 'vitest'
import { delayIn, withDelay } from './retry-delay.ts'

const type = 'type.googleapis.com/google.rpc.RetryInfo'
const failed = (...details: object[]) => JSON.parse(JSON.stringify({ error: { code: 429, details } }))

it.each([
  ['34.07s', '35'],
  ['0s', '0'],
  ['999999s', '86400'],
  ['-1s', undefined],
  ['1m', undefined],
  [7, undefined],
])('the delay %j of Google is the header %j', (retryDelay, expected) => {
  expect(delayIn(failed({ '@type': 'x', retryDelay: '1s' }, { '@type': type, retryDelay }))).toBe(expected)
})

it('errors without details have no delay', () => {
  expect([delayIn({}), delayIn({ error: 'x' }), delayIn({ error: { details: 'x' } })]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
})

it('a header in seconds is added to the details', () => {
  expect(withDelay(failed({ a: 1 }), '3')).toEqual(failed({ a: 1 }, { '@type': type, retryDelay: '3s' }))
  expect(withDelay({ error: {} }, '3')).toEqual({ error: { details: [{ '@type': type, retryDelay: '3s' }] } })
  for (const value of [undefined, 'Wed, 21 Oct 2026 07:28:00 GMT'])
    expect(withDelay(failed(), value)).toEqual(failed())
})
