import { describe, expect, it } from 'vitest'
import { createPlaneMemories } from '../../../test/support/plane-memories.ts'
import { releaseFailedPlane } from './failed-plane.ts'
import { createKeyedAccounts, type KeyedAccounts, keyedAccountsPrefix } from './keyed-accounts.ts'
import { createLocalMemory, type Memory, type Region } from './memory.ts'

const request = { limit: 100, amount: 10, isUnlimited: false, levels: [50, 100], endsAt: 1_000, now: 0 }

function reserve(
  accounts: KeyedAccounts,
  key: string,
  changes: Partial<typeof request> & { mustFit?: boolean } = {},
) {
  const reservation = accounts.reserve(key, { ...request, ...changes })
  if (reservation.kind === 'full') throw new Error('an account expected')
  return reservation
}

describe('accounts by key', () => {
  it('refuse a reservation at the limit, reserved amounts included', () => {
    const accounts = createKeyedAccounts(createLocalMemory(), 'test', 10)
    const first = reserve(accounts, 'a', { amount: 60 })
    const second = reserve(accounts, 'a', { amount: 60 })
    expect([first.kind, second.kind, reserve(accounts, 'a').kind]).toEqual([
      'reserved',
      'reserved',
      'refused',
    ])
    expect(reserve(accounts, 'a', { isUnlimited: true }).kind).toBe('reserved')
    expect(reserve(accounts, 'b').kind).toBe('reserved')
    accounts.settle(first.reference, { reserved: 60, amount: 20, levels: [] })
    expect(accounts.find('a')).toEqual({ key: 'a', used: 20, reserved: 70, limit: 100, endsAt: 1_000 })
  })

  it('refuse an amount that must fit and does not', () => {
    const accounts = createKeyedAccounts(createLocalMemory(), 'test', 10)
    const amounts = [101, 60, 41, 40, 1]
    expect(amounts.map((amount) => reserve(accounts, 'a', { amount, mustFit: true }).kind)).toEqual([
      'refused',
      'reserved',
      'refused',
      'reserved',
      'refused',
    ])
  })

  it('report each level once', () => {
    const accounts = createKeyedAccounts(createLocalMemory(), 'test', 10)
    const { reference } = reserve(accounts, 'a')
    const settle = (amount: number) =>
      accounts.settle(reference, { reserved: 0, amount, levels: request.levels })
    expect([settle(49), settle(1), settle(1), settle(49), settle(1)]).toEqual([0, 1, 0, 2, 0])
  })

  it('add the use elsewhere of the latest report', () => {
    const accounts = createKeyedAccounts(createLocalMemory(), 'test', 10)
    accounts.setElsewhere('a', { amount: 30, number: 2, endsAt: 1_000 }, 0)
    accounts.setElsewhere('a', { amount: 10, number: 1, endsAt: 1_000 }, 0)
    expect(accounts.find('a')?.used).toBe(30)
    accounts.setElsewhere('a', { amount: 20, number: 3, endsAt: 1_000 }, 0)
    expect(accounts.find('a')?.used).toBe(20)
  })

  it('end, and make room for others', () => {
    const accounts = createKeyedAccounts(createLocalMemory(), 'test', 64)
    for (let index = 0; index < 64; index++) reserve(accounts, `${index}`, { amount: 0 })
    expect(accounts.reserve('further', request).kind).toBe('full')
    expect(reserve(accounts, 'further', { now: 1_000, endsAt: 2_000 }).kind).toBe('reserved')
    expect(accounts.size).toBeLessThan(64)
  })

  it('last while a request is in progress', () => {
    const accounts = createKeyedAccounts(createLocalMemory(), 'test', 64)
    const { reference } = reserve(accounts, 'pending')
    for (let index = 0; index < 500; index++)
      reserve(accounts, `${index}`, { amount: 0, now: 1_000 + index, endsAt: index })
    accounts.settle(reference, { reserved: 10, amount: 5, levels: [] })
    expect(accounts.find('pending')).toMatchObject({ used: 5, reserved: 0 })
  })

  it('accept keys of any length', () => {
    const accounts = createKeyedAccounts(createLocalMemory(), 'test', 10)
    const key = 'a'.repeat(5_000)
    reserve(accounts, key)
    expect([accounts.find(key)?.reserved, accounts.find(`${key}a`)]).toEqual([10, undefined])
  })

  it('release the reservations of a data plane that fails', () => {
    const regions: { name: string; region: Region }[] = []
    const [one, other] = createPlaneMemories(2).map((memory): Memory => {
      const region: Memory['region'] = (name, bytes, maxBytes) => {
        const created = memory.region(name, bytes, maxBytes)
        regions.push({ name, region: created })
        return created
      }
      return { ...memory, region }
    })
    if (one === undefined || other === undefined) throw new Error('two memories expected')
    const [failing, remaining] = [one, other].map((memory) => createKeyedAccounts(memory, 'test', 10))
    if (failing === undefined || remaining === undefined) throw new Error('two data planes expected')
    reserve(failing, 'a', { amount: 7 })
    reserve(remaining, 'a', { amount: 5 })
    expect(regions[0]?.name).toBe(`${keyedAccountsPrefix}test`)
    releaseFailedPlane(regions, 0, 2)
    expect(remaining.find('a')?.reserved).toBe(5)
  })

  it('report the time of the latest report', () => {
    const [one, other] = createPlaneMemories(2).map((memory) => createKeyedAccounts(memory, 'test', 10))
    expect(one?.reports()).toEqual({ kind: 'unexpected' })
    one?.expectReports()
    expect(other?.reports()).toEqual({ kind: 'expected' })
    one?.reported(5)
    expect(other?.reports()).toEqual({ kind: 'reported', at: 5 })
  })
})
