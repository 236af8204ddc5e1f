import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../../test/fixtures/pipeline.ts'
import { createReplayCache, createTokenFamilies } from './replay.ts'

describe('replay cache', () => {
  it('evicts only the oldest ids', () => {
    const used = createReplayCache(2)
    expect([used.tryUse('a'), used.tryUse('a'), used.tryUse('b'), used.tryUse('c')]).toEqual([
      true,
      false,
      true,
      true,
    ])
    expect([used.tryUse('c'), used.tryUse('a')]).toEqual([false, true])
  })
})

describe('a family of refresh tokens', () => {
  const { clock } = fixtureContext()
  const start = (capacity = 10) => createTokenFamilies<string>(capacity, clock)
  const used = (result: string) => async () => ({ result, isUsed: true })

  it('rotates each generation once, and repeats the result for ten seconds', async () => {
    const families = start()
    const first = { family: 'f', generation: 0 }
    expect(await families.rotate(first, used('one'))).toEqual({ kind: 'rotated', result: 'one' })
    expect(await families.rotate(first, used('two'))).toEqual({ kind: 'rotated', result: 'one' })
    clock.advance(10_000)
    expect(await families.rotate(first, used('three'))).toMatchObject({ kind: 'refused' })
    expect(families.isRevoked('f')).toBe(true)
    expect(await families.rotate({ family: 'f', generation: 1 }, used('four'))).toMatchObject({
      kind: 'refused',
    })
    expect(families.isRevoked('g')).toBe(false)
  })

  it('rejects all generations after the reuse of an older one', async () => {
    const families = start()
    await families.rotate({ family: 'f', generation: 0 }, used('one'))
    await families.rotate({ family: 'f', generation: 1 }, used('two'))
    expect(await families.rotate({ family: 'f', generation: 0 }, used('three'))).toMatchObject({
      kind: 'refused',
    })
    expect(families.isRevoked('f')).toBe(true)
  })

  it('allows a retry after a failed rotation', async () => {
    const families = start()
    const first = { family: 'f', generation: 0 }
    const failed = Promise.all([
      families.rotate(first, () => Promise.reject(new Error('lost'))),
      families.rotate(first, used('never')),
    ])
    await expect(failed).rejects.toThrow('lost')
    expect(await families.rotate(first, async () => ({ result: '503', isUsed: false }))).toMatchObject({
      result: '503',
    })
    expect(await families.rotate(first, used('one'))).toEqual({ kind: 'rotated', result: 'one' })
  })

  it('rejects another generation during a rotation', async () => {
    const families = start()
    const waiting = Promise.withResolvers<{ result: string; isUsed: boolean }>()
    const first = families.rotate({ family: 'f', generation: 3 }, () => waiting.promise)
    expect(await families.rotate({ family: 'f', generation: 4 }, used('x'))).toMatchObject({
      kind: 'refused',
    })
    waiting.resolve({ result: 'one', isUsed: true })
    expect(await first).toEqual({ kind: 'rotated', result: 'one' })
  })
})
