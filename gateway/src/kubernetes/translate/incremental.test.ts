import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clusterOf, type SlotChoice } from '../../../test/fixtures/kubernetes.ts'
import { clusterSlots } from '../../../test/fixtures/kubernetes-cluster.ts'
import { validateConfig } from '../../config/load/validate.ts'
import type { Config } from '../../config/schema.ts'
import { createTranslator, type Translation } from './translate.ts'

const slots = clusterSlots()
const choice = fc.nat(slots.length - 1).chain((slot) => {
  const variants = slots[slot]?.variants.length ?? 0
  return fc.record({ slot: fc.constant(slot), variant: fc.integer({ min: -1, max: variants - 1 }) })
})

describe('createTranslator', () => {
  it('has the same results after any changes of objects as a new translator', () => {
    const initial = fc.tuple(
      ...slots.map(({ variants }) => fc.integer({ min: -1, max: variants.length - 1 })),
    )
    fc.assert(
      fc.property(initial, fc.array(choice, { maxLength: 8 }), fc.boolean(), (start, edits, reversed) => {
        const translate = createTranslator()
        let chosen: readonly SlotChoice[] = start.map((variant, slot) => ({ slot, variant }))
        let objects = clusterOf(slots, chosen)
        translate(objects)
        for (const edit of edits) {
          chosen = chosen.map((before) => (before.slot === edit.slot ? edit : before))
          objects = clusterOf(slots, chosen, objects)
          const found = translate(objects)
          const fresh = createTranslator()(clusterOf(slots, reversed ? chosen.toReversed() : chosen))
          expect(found).toEqual(fresh)
          for (const { config } of found.gateways.values()) expect(validateConfig(config)).toEqual([])
        }
      }),
      { numRuns: 150 },
    )
  })

  it('keeps the nodes of unchanged objects in the Config', () => {
    const all = slots.map((_, slot) => ({ slot, variant: 0 }))
    const translate = createTranslator()
    const before = configOf(translate(clusterOf(slots, all)))

    const edited = configOf(translate(clusterOf(slots, replaced(all, 'HTTPRoute', 'one'))))
    expect(edited.routes).not.toBe(before.routes)
    expect(shared(before.routes, edited.routes)).toEqual(['HTTPRoute/a/models/0', 'HTTPRoute/b/two/0'])
    expect(edited.gateways).toBe(before.gateways)

    const again = configOf(translate(clusterOf(slots, all)))
    const moved = configOf(translate(clusterOf(slots, replaced(all, 'EndpointSlice', 's-1'))))
    expect(moved.routes).toBe(again.routes)
    expect(moved.backends).not.toBe(again.backends)
  })
})

function configOf({ gateways }: Translation): Config {
  const found = gateways.get('a/web')?.config
  if (found === undefined) throw new Error('the fixture has a Gateway a/web')
  return found
}

/** The choices with the second form of one object. */
function replaced(choices: readonly SlotChoice[], kind: string, name: string): readonly SlotChoice[] {
  return choices.map((before) => {
    const { kind: own, metadata } = slots[before.slot]?.variants[0] ?? {}
    return own === kind && (metadata as { name: string }).name === name ? { ...before, variant: 1 } : before
  })
}

/** Names of the items that are the same objects. */
function shared(before: Config['routes'] = [], after: Config['routes'] = []): (string | undefined)[] {
  return after.filter((route) => before.includes(route)).map(({ name }) => name)
}
