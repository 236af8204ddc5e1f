import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { type LinkedPeers, linkMemory, linkPeers } from '../../../test/support/linked-peers.ts'
import type { Memory } from '../../lib/planes/memory.ts'
import type { Peers } from '../../lib/planes/peers.ts'
import { createRotationResults, isCompleteReply } from './rotation-results.ts'
import { createTokenFamilies } from './token-families.ts'

const { clock, memory, peers } = fixtureContext()
const isText = (value: unknown): value is string => typeof value === 'string'

function familiesOf(memory: Memory, peers: Peers, capacity = 10) {
  const results = createRotationResults(peers, 'refresh token rotations')
  return createTokenFamilies<string>({ name: 'families', capacity, results, isResult: isText }, memory, clock)
}

const used = (result: string) => async () => ({ result, isUsed: true })

describe('a family of refresh tokens', () => {
  const start = () => familiesOf(memory, peers)

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

describe('a family of several data planes', () => {
  let linked: LinkedPeers | undefined
  afterEach(() => linked?.close())

  function setUp(count = 3) {
    linked?.close()
    const planes = linkPeers(count)
    linked = planes
    const memories = linkMemory(count)
    const create = (plane: number) => {
      const [own, others] = [memories[plane], planes.peers[plane]]
      if (own === undefined || others === undefined) throw new Error(`no data plane ${plane}`)
      return familiesOf(own, others)
    }
    const replace = (plane: number) => {
      planes.replace(plane)
      return create(plane)
    }
    const [a, b, c] = Array.from({ length: count }, (_, plane) => create(plane))
    if (a === undefined || b === undefined || c === undefined) throw new Error('three data planes')
    return { planes, replace, a, b, c }
  }

  const first = { family: 'f', generation: 0 }

  it('rotates once, and repeats the result on each of them', async () => {
    const { a, b, c } = setUp()
    const waiting = Promise.withResolvers<{ result: string; isUsed: boolean }>()
    const rotations = [
      a.rotate(first, () => waiting.promise),
      b.rotate(first, used('two')),
      c.rotate(first, used('three')),
    ]
    waiting.resolve({ result: 'one', isUsed: true })
    expect(await Promise.all(rotations)).toEqual(Array(3).fill({ kind: 'rotated', result: 'one' }))
    expect(await c.rotate(first, used('four'))).toEqual({ kind: 'rotated', result: 'one' })
    clock.advance(10_000)
    expect(await b.rotate(first, used('five'))).toMatchObject({ kind: 'refused' })
    expect([a, b, c].map((families) => families.isRevoked('f'))).toEqual([true, true, true])
  })

  it('fails the requests that wait on other data planes with the rotation', async () => {
    const { planes, a, b } = setUp()
    const waiting = Promise.withResolvers<{ result: string; isUsed: boolean }>()
    const failures = [
      expect(a.rotate(first, () => waiting.promise)).rejects.toThrow('lost'),
      expect(b.rotate(first, used('never'))).rejects.toThrow('lost'),
    ]
    // Calls arrive in order.
    await planes.peers[1]?.call(0, 'refresh token rotations', undefined, 10_000)
    waiting.reject(new Error('lost'))
    await Promise.all(failures)
    expect(await b.rotate(first, used('one'))).toMatchObject({ result: 'one' })
  })

  it('rotates again if the data plane of the rotation has ended', async () => {
    const { planes, a, b } = setUp()
    void a.rotate(first, () => new Promise(() => {}))
    const waiting = b.rotate(first, used('second'))
    planes.end(0)
    expect(await waiting).toEqual({ kind: 'rotated', result: 'second' })
  })

  it('rotates again if the data plane of the rotation was replaced', async () => {
    const { replace, a, c } = setUp()
    void a.rotate(first, () => new Promise(() => {}))
    const replacement = replace(0)
    expect(await c.rotate(first, used('second'))).toEqual({ kind: 'rotated', result: 'second' })
    void c.rotate({ family: 'g', generation: 0 }, () => new Promise(() => {}))
    expect(await replacement.rotate(first, used('third'))).toEqual({ kind: 'rotated', result: 'second' })
  })

  it('refuses a used token, without a revocation, if its result was lost', async () => {
    const { planes, a, b } = setUp()
    await a.rotate(first, used('one'))
    planes.end(0)
    expect(await b.rotate(first, used('two'))).toMatchObject({ kind: 'refused' })
    expect(b.isRevoked('f')).toBe(false)
    expect(await b.rotate({ family: 'f', generation: 1 }, used('two'))).toMatchObject({ result: 'two' })
  })

  it('never spends a generation twice', async () => {
    const step = fc.record({
      plane: fc.nat(2),
      generation: fc.nat(3),
      pauseMs: fc.constantFrom(0, 0, 5_000, 10_000),
      fails: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const { a, b, c } = setUp()
        const planes = [a, b, c]
        const spent: number[] = []
        const rotations = steps.map(async ({ plane, generation, pauseMs, fails }, index) => {
          clock.advance(pauseMs)
          return planes[plane]?.rotate({ family: 'f', generation }, async () => {
            await Promise.resolve()
            if (!fails) spent.push(generation)
            return { result: `${index}`, isUsed: !fails }
          })
        })
        await Promise.all(rotations)
        expect(new Set(spent).size).toBe(spent.length)
        expect(spent).toEqual(spent.toSorted((one, other) => one - other))
      }),
      { numRuns: 50 },
    )
  })
})

it('a result of another data plane is a reply with its whole body', () => {
  const reply = { status: 200, headers: {}, body: Buffer.from('{}') }
  expect(isCompleteReply(structuredClone(reply))).toBe(true)
  for (const other of [
    undefined,
    null,
    'x',
    {},
    { ...reply, body: { start() {} } },
    { ...reply, status: '200' },
  ])
    expect(isCompleteReply(other)).toBe(false)
})
