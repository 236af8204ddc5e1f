import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../../test/support/time-bound.ts'
import { shareStructure, shareStructureInSteps } from './structural-share.ts'

const anyJson = fc.jsonValue({ maxDepth: 5 })
const names = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const entry = fc.record({ name: names, value: anyJson }, { noNullPrototype: true })

it('returns a value equal to the next one and changes no argument', () => {
  fc.assert(
    fc.property(anyJson, anyJson, (previous, next) => {
      const before = structuredClone({ previous, next })
      expect(shareStructure(previous, next)).toStrictEqual(next)
      expect({ previous, next }).toStrictEqual(before)
    }),
  )
})

it('returns the previous object if nothing changed', () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      expect(shareStructure(value, structuredClone(value))).toBe(value)
    }),
    { numRuns: 1_000 },
  )
})

it('retains the identity of every equal named item at any index', () => {
  const unique = fc.uniqueArray(entry, { selector: (item) => item.name })
  fc.assert(
    fc.property(unique, unique, (previous, changed) => {
      const kept = previous.filter((_, index) => index % 2 === 0)
      const keptNames = new Set(kept.map((item) => item.name))
      const next = [
        ...changed.filter((item) => !keptNames.has(item.name)),
        ...structuredClone(kept).reverse(),
      ]
      const result = shareStructure(previous, next)
      expect(result).toStrictEqual(next)
      for (const item of kept) expect(result).toContain(item)
    }),
  )
})

it.each([[[['{}'], {}, ['[]'], []]], [[0, -0, '-0', ['-0']]], [['0', 0, null, 'null']]])(
  'distinguishes similar items: %j',
  (previous: unknown[]) => {
    expect(shareStructure(previous, structuredClone(previous))).toBe(previous)
    const reversed = structuredClone(previous).reverse()
    const result = shareStructure(previous, reversed)
    expect(result).toStrictEqual(reversed)
    expect(result).toEqual([...previous].reverse())
    for (const item of previous) expect(result).toContain(item)
  },
)

it('treats equal items as distinct', () => {
  const previous = [{ a: 1 }, { a: 1 }, { a: 2 }]
  const result = shareStructure(previous, [{ a: 2 }, { a: 1 }, { a: 1 }])
  expect(result[0]).toBe(previous[2])
  expect(new Set(result)).toEqual(new Set(previous))
  expect(new Set(result).size).toBe(3)
})

it('retains unchanged parts of a changed object', () => {
  const previous = { llm: { models: [{ name: 'a', params: { x: 1 } }], port: 1 }, config: { y: [1] } }
  const next = { llm: { models: [{ name: 'a', params: { x: 1 } }], port: 2 }, config: { y: [1] } }
  const result = shareStructure(previous, next)
  expect(result).toEqual(next)
  expect(result).not.toBe(previous)
  expect(result.llm).not.toBe(previous.llm)
  expect(result.llm.models).toBe(previous.llm.models)
  expect(result.config).toBe(previous.config)
})

it('matches a named item with another index and content', () => {
  const previous = [
    { name: 'a', deep: { x: 1 }, n: 1 },
    { name: 'b', deep: { x: 1 }, n: 1 },
  ]
  const result = shareStructure(previous, [{ name: 'b', deep: { x: 1 }, n: 2 }])
  expect(result[0]?.deep).toBe(previous[1]?.deep)
})

it('matches items without a name by content, then by index', () => {
  const previous = [{ requests: 1 }, { requests: 2, extra: { y: 1 } }]
  const result = shareStructure(previous, [{ requests: 3 }, { requests: 1 }])
  expect(result[1]).toBe(previous[0])
  const edited = shareStructure(previous, [{ requests: 1 }, { requests: 5, extra: { y: 1 } }])
  expect(edited[0]).toBe(previous[0])
  expect(edited[1]).toHaveProperty('extra', previous[1]?.extra)
  expect(Object(edited[1]).extra).toBe(previous[1]?.extra)
})

it('treats a removed key as a change', () => {
  const previous = { a: 1, b: 2 }
  expect(shareStructure<object>(previous, { a: 1 })).toEqual({ a: 1 })
})

it('supports keys of the prototype', () => {
  const next = JSON.parse('{"__proto__": {"x": 1}, "constructor": 1, "toString": [1]}')
  const result = shareStructure({}, next)
  expect(Object.keys(result)).toEqual(['__proto__', 'constructor', 'toString'])
  expect(Reflect.getPrototypeOf(result)).toBe(Object.prototype)
})

it.each([
  ['with names', (index: number) => ({ name: `k${index}`, metadata: { user: `u${index}` } })],
  [
    'without names',
    (index: number) => ({ keyHash: `sha256:${index % 50_000}`, metadata: { user: `u${index}` } }),
  ],
])('needs time proportional to the length of lists %s', async (_kind, make) => {
  const previous = Array.from({ length: 100_000 }, (_, index) => make(index))
  const next = structuredClone(previous).slice(1)
  let result: typeof previous = []
  // A search per item would take minutes.
  await expectBelow(5_000, () =>
    cpuMsOf(() => {
      result = shareStructure(previous, next)
    }),
  )
  expect(result[0]).toBe(previous[1])
  expect(result.at(-1)).toBe(previous.at(-1))
})

it('returns the same result in steps', async () => {
  const list = fc.array(fc.oneof(anyJson, entry))
  await fc.assert(
    fc.asyncProperty(list, list, async (previous, next) => {
      const whole = shareStructure(previous, next)
      const sliced = await shareStructureInSteps(previous, next, () => Promise.resolve())
      expect(sliced).toStrictEqual(whole)
      expect(sliced.map((item) => previous.indexOf(item))).toEqual(
        whole.map((item) => previous.indexOf(item)),
      )
    }),
  )
})

it('yields between the items of a long list', async () => {
  const routes = Array.from({ length: 1_000 }, (_, index) => ({ name: `route-${index}`, path: index }))
  let turns = 0
  const yieldPoint = () => {
    turns += 1
    return undefined
  }
  await shareStructureInSteps({ routes }, { routes: structuredClone(routes) }, yieldPoint)
  expect(turns).toBeGreaterThanOrEqual(1_000)
})
