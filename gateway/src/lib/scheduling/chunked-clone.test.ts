import fc from 'fast-check'
import { expect, it } from 'vitest'
import { deserializeChunks, serializeChunks } from './chunked-clone.ts'

const never = () => undefined
const anyJson = fc.jsonValue({ maxDepth: 4 })
const longList = fc.array(anyJson, { minLength: 101, maxLength: 450 })

it('restores the serialized value', async () => {
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

it('preserves values without a JSON text', async () => {
  const value = { none: undefined, zero: -0, odd: [Number.NaN, Number.POSITIVE_INFINITY], big: 2n ** 70n }
  expect(await deserializeChunks(serializeChunks(value), never)).toStrictEqual(value)
})

it('splits long lists at any depth', () => {
  const routes = Array.from({ length: 1000 }, (_, index) => ({ name: `route-${index}` }))
  expect(serializeChunks({ config: { routes } })).toHaveLength(11)
  expect(serializeChunks([{ listeners: [{ routes }] }])).toHaveLength(11)
  expect(serializeChunks({ routes: routes.slice(0, 100) })).toHaveLength(1)
})

it('produces transferable chunks', () => {
  const pieces = serializeChunks({ list: Array.from({ length: 300 }, (_, index) => index) })
  const moved = structuredClone(pieces, { transfer: pieces.map(({ buffer }) => buffer) })
  expect(moved.map(({ byteLength }) => byteLength > 0)).toEqual([true, true, true, true])
  expect(pieces.map(({ byteLength }) => byteLength)).toEqual([0, 0, 0, 0])
})

it('yields between chunks', async () => {
  const pieces = serializeChunks(Array.from({ length: 1000 }, (_, index) => index))
  let turns = 0
  const yieldPoint = () => {
    turns += 1
    return Promise.resolve()
  }
  await deserializeChunks(pieces, yieldPoint)
  expect(turns).toBe(pieces.length - 1)
})
