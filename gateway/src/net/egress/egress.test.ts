import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { expect, it } from 'vitest'
import { type EgressPolicy, guardedLookup, refusedLiteral } from './egress.ts'

const policy: EgressPolicy = {
  key: 'test',
  refuses: ({ host, address, port }) =>
    address.startsWith('10.') ? `${host} ${address} ${port} is refused` : undefined,
}

const resolver =
  (...addresses: string[]): LookupFunction =>
  (_host, _options, done) =>
    done(
      null,
      addresses.map((address) => ({ address, family: 4 })),
    )

function resolved(lookup: LookupFunction, all: boolean) {
  return new Promise<{ error: Error | null; found: string | LookupAddress[] }>((resolve) =>
    guardedLookup(policy, 80, lookup)('a.test', { all }, (error, found) => resolve({ error, found })),
  )
}

it('a lookup returns allowed addresses only', async () => {
  const lookup = resolver('10.0.0.1', '192.0.2.1', '192.0.2.2')
  expect(await resolved(lookup, true)).toEqual({
    error: null,
    found: [
      { address: '192.0.2.1', family: 4 },
      { address: '192.0.2.2', family: 4 },
    ],
  })
  expect(await resolved(lookup, false)).toEqual({ error: null, found: '192.0.2.1' })
})

it('a lookup fails with the reason without an allowed address', async () => {
  const { error } = await resolved(resolver('10.0.0.1', '10.0.0.2'), true)
  expect(error?.message).toBe('a.test 10.0.0.1 80 is refused')
})

it('a lookup fails with the error of the resolver', async () => {
  const failing: LookupFunction = (_host, _options, done) => done(new Error('no such name'), [])
  expect((await resolved(failing, true)).error?.message).toBe('no such name')
})

it('addresses are checked without a lookup', () => {
  expect(refusedLiteral(policy, '10.0.0.1', 81)?.message).toBe('10.0.0.1 10.0.0.1 81 is refused')
  expect(refusedLiteral(policy, '192.0.2.1', 81)).toBeUndefined()
  expect(refusedLiteral(policy, '10.example', 81)).toBeUndefined()
})
