import fc from 'fast-check'
import { expect, it } from 'vitest'
import { deserializeChunks, serializeChunks } from './chunked-clone.ts'

const never = () => undefined
const anyJson = fc.jsonValue({ maxDepth: 4 })
const longList = fc.array(anyJson, { minLength: 101, maxLength: 450 })

it('gives back what it took apart', async () => {
  const anything = fc.oneof(
    anyJson,
    longList,
    fc.dictionary(fc.oneof(fc.string(), fc.constant('__proto__')), fc.oneof(anyJson, longList), {
      noNullPrototype: true,
    }),
    fc.array(fc.record({ routes: longList }, { noNullPrototype: true }), { maxLength: 3 }),
  )
  await fc.assert(
    fc.asyncProperty(anything, async (value) => {
      expect(await deserializeChunks(serializeChunks(value), never)).toStrictEqual(value)
    }),
  )
})

it('keeps what JSON has no text for', async () => {
  const value = { none: undefined, zero: -0, odd: [Number.NaN, Number.POSITIVE_INFINITY], big: 2n ** 70n }
  expect(await deserializeChunks(serializeChunks(value), never)).toStrictEqual(value)
})

it('makes many pieces of long lists, wherever they are', () => {
  const routes = Array.from({ length: 1000 }, (_, index) => ({ name: `route-${index}` }))
  expect(serializeChunks({ config: { routes } })).toHaveLength(11)
  expect(serializeChunks([{ listeners: [{ routes }] }])).toHaveLength(11)
  expect(serializeChunks({ routes: routes.slice(0, 100) })).toHaveLength(1)
})

it('makes pieces that can be handed over without a copy', () => {
  const pieces = serializeChunks({ list: Array.from({ length: 300 }, (_, index) => index) })
  const moved = structuredClone(pieces, { transfer: pieces.map(({ buffer }) => buffer) })
  expect(moved.map(({ byteLength }) => byteLength > 0)).toEqual([true, true, true, true])
  expect(pieces.map(({ byteLength }) => byteLength)).toEqual([0, 0, 0, 0])
})

it('lets others have a turn between pieces', async () => {
  const pieces = serializeChunks(Array.from({ length: 1000 }, (_, index) => index))
  let turns = 0
  const yieldPoint = () => {
    turns += 1
    return Promise.resolve()
  }
  await deserializeChunks(pieces, yieldPoint)
  expect(turns).toBe(pieces.length - 1)
})
