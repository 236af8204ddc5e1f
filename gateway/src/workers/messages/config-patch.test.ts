import { deserialize, serialize } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { shareStructure } from '../../config/live/structural-share.ts'
import { applyPatch, diffConfig, type Patch } from './config-patch.ts'

const unmarked = () => false

/** Applies the patch as a thread does, after a copy. */
function transferred(previous: unknown, patch: Patch, mark: (part: unknown) => void = () => {}): unknown {
  return applyPatch(previous, deserialize(serialize(patch)), mark)
}

/** Pairs of corresponding containers of two equal values. */
function* pairs(one: unknown, other: unknown): Generator<readonly [object, object]> {
  if (typeof one !== 'object' || one === null || typeof other !== 'object' || other === null) return
  yield [one, other]
  for (const [key, part] of Object.entries(one)) yield* pairs(part, Reflect.get(other, key))
}

const leaf = fc.oneof(fc.integer(), fc.string({ maxLength: 3 }), fc.boolean(), fc.constant(null))
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    tie('list'),
    tie('object'),
    tie('named'),
  ),
  list: fc.array(tie('tree'), { maxLength: 5 }),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), tie('tree'), { maxKeys: 3 }),
  named: fc.uniqueArray(fc.record({ name: fc.constantFrom('p', 'q', 'r', 's'), value: tie('tree') }), {
    maxLength: 4,
    selector: ({ name }) => name,
  }),
}))

describe('configuration patches', () => {
  it('reproduce the next value from a copy of the previous one', () => {
    fc.assert(
      fc.property(tree, tree, (first, second) => {
        const copy = transferred(undefined, diffConfig(undefined, first, unmarked))
        expect(copy).toEqual(first)
        const next = shareStructure(first, second)
        expect(transferred(copy, diffConfig(first, next, unmarked))).toEqual(next)
      }),
    )
  })

  it('are empty for the same value', () => {
    const value = { routes: [{ name: 'a' }] }
    expect(diffConfig(value, value, unmarked)).toBe(0)
  })

  it('retain unchanged parts of lists with names as the same objects', () => {
    const item = fc.record({ name: fc.constantFrom('p', 'q', 'r', 's', 't'), value: tree, more: tree })
    const list = fc.uniqueArray(item, { maxLength: 5, selector: ({ name }) => name })
    fc.assert(
      fc.property(list, list, (first, second) => {
        const copy = transferred(undefined, diffConfig(undefined, first, unmarked))
        const next = shareStructure(first, second)
        const result = transferred(copy, diffConfig(first, next, unmarked))
        const counterparts = new Map<object, object>(pairs(first, copy))
        for (const [expected, actual] of pairs(next, result)) {
          const counterpart = counterparts.get(expected)
          if (counterpart !== undefined) expect(actual).toBe(counterpart)
        }
      }),
    )
  })

  it('send one item of a long list', () => {
    const first = { keys: Array.from({ length: 10_000 }, (_, index) => ({ keyHash: `h${index}` })) }
    const next = { keys: first.keys.toSpliced(5_000, 1, { keyHash: 'new' }) }
    expect(serialize(diffConfig(first, next, unmarked)).byteLength).toBeLessThan(500)
  })

  it('carry the marks of parts from the config API', () => {
    const record = { host: 'example.test' }
    const first = { backends: [{ host: 'file.test' }] }
    const next = { backends: [...first.backends, record] }
    const marked: unknown[] = []
    const copy = transferred(undefined, diffConfig(undefined, first, unmarked))
    const patch = diffConfig(first, next, (node) => node === record)
    transferred(copy, patch, (part) => marked.push(part))
    expect(marked).toEqual([record])
  })

  it('replace a part with equal content and another mark', () => {
    const before = { name: 'a', host: 'one.test' }
    const after = { name: 'a', host: 'two.test' }
    const marked: unknown[] = []
    const patch = diffConfig([before], [after], (node) => node === after)
    expect(transferred([{ ...before }], patch, (part) => marked.push(part))).toEqual([after])
    expect(marked).toEqual([after])
  })
})
