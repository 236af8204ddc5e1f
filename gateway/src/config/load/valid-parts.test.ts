import fc from 'fast-check'
import { expect, it } from 'vitest'
import { check } from '../../schema/check.ts'
import { list, name, object, optional } from '../../schema/dsl.ts'
import { checkValidParts } from './valid-parts.ts'

const doc = { doc: 'x' }
const item = object({ name: name(doc), tags: optional(list(name(doc), doc)) }, doc)
const schema = object({ items: list(item, doc), other: optional(item) }, doc)

function partsOf(value: unknown) {
  return checkValidParts(schema, value, check(schema, value))
}

it('removes exactly the items that the removal of a member does not repair', () => {
  const parts = partsOf({ items: [{ name: '' }, { name: 'b', more: 1 }, 5, { name: 'd' }] })
  expect(parts?.value).toEqual({ items: [{ name: 'b' }, { name: 'd' }] })
  expect(parts?.written(['items', 1, 'name'])).toEqual(['items', 3, 'name'])
})

it('returns undefined if nothing valid remains', () => {
  expect(partsOf(5)).toBeUndefined()
})

it('retains every valid item and maps its path to the original path', () => {
  const items = fc.array(
    fc.oneof(
      fc.constant({}),
      fc.constant(null),
      fc.record({ name: fc.constantFrom('', 'a', 'b'), tags: fc.array(fc.constantFrom('', 't')) }),
    ),
    { maxLength: 8 },
  )
  fc.assert(
    fc.property(items, (given) => {
      const value = { items: given }
      const parts = partsOf(value)
      if (parts === undefined) throw new Error('nothing remains')
      const isNamed = (entry: (typeof given)[number]) =>
        entry !== null && 'name' in entry && entry.name !== ''
      expect(parts.value.items).toHaveLength(given.filter(isNamed).length)
      for (const [index, entry] of parts.value.items.entries()) {
        const [, written = -1] = parts.written(['items', index])
        expect(given[Number(written)]).toMatchObject({ name: entry.name })
        for (const [at, tag] of (entry.tags ?? []).entries()) {
          const path = parts.written(['items', index, 'tags', at])
          expect(path.reduce<unknown>((here, step) => Reflect.get(Object(here), step), value)).toBe(tag)
        }
      }
    }),
  )
})
