import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPolicyWorld, place, policy } from '../../../../test/support/policy-world.ts'
import { compileCheckedCel } from '../../../cel/checked.ts'
import { ruleSource } from '../../../pipeline/rules.ts'
import type { RoutePolicies } from '../plan.ts'
import { createPolicyIndexer } from './policies.ts'

const targets = ['Gateway/g', 'Gateway/g/http', 'HTTPRoute/r', 'HTTPRoute/r/first'] as const
type TargetName = (typeof targets)[number]
type Rules = readonly { readonly [action in 'allow' | 'deny' | 'require']?: string }[]

type Written = {
  readonly name: string
  readonly age: number
  readonly targets: readonly TargetName[]
  readonly limits: readonly number[]
  readonly rules: Rules
}

const rule = fc
  .tuple(fc.constantFrom('allow', 'deny', 'require'), fc.constantFrom('true', 'false'))
  .map(([action, source]) => ({ [action]: source }))
const written: fc.Arbitrary<Written> = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  age: fc.integer({ min: 0, max: 2 }),
  targets: fc.uniqueArray(fc.constantFrom(...targets), { minLength: 1 }),
  limits: fc.array(fc.integer({ min: 1, max: 99 }), { maxLength: 2 }),
  rules: fc.array(rule, { maxLength: 3 }),
})
const policies = fc.uniqueArray(written, { maxLength: 5, selector: ({ name }) => name })

function objectOf({ name, age, targets: of, limits, rules }: Written) {
  const local = limits.map((requests) => ({ requests, unit: 'Hours' }))
  const traffic = {
    ...(local.length > 0 && { rateLimit: { local } }),
    ...(rules.length > 0 && { authorization: { rules } }),
  }
  return policy(name, { targets: of, age, traffic })
}

/** The policy that applies to a field of a target: the older, then the first by name. */
function winner(all: readonly Written[], target: TargetName, has: (one: Written) => boolean) {
  return all
    .filter((one) => one.targets.includes(target) && has(one))
    .toSorted((a, b) => b.age - a.age || (a.name < b.name ? -1 : 1))[0]
}

function permits(rules: NonNullable<RoutePolicies['authorization']>['rules']): boolean {
  const found = rules.map((each) => {
    const { kind, source } = ruleSource(each)
    return { kind, holds: compileCheckedCel(source, new Set()).evaluate({}) === true }
  })
  const allowed = found.filter(({ kind }) => kind === 'allow')
  return (
    found.every(({ kind, holds }) => kind === 'allow' || holds === (kind === 'require')) &&
    (allowed.length === 0 || allowed.some(({ holds }) => holds))
  )
}

describe('the policies of a rule', () => {
  it('contain the limits of the applied policy of every level', () => {
    fc.assert(
      fc.property(policies, (all) => {
        const found = createPolicyWorld(all.map(objectOf)).index.policiesOf(place()).policies
        const expected = targets.flatMap((target) => {
          const one = winner(all, target, ({ limits }) => limits.length > 0)
          const path = target.replace('/', '/default/')
          return (one?.limits ?? []).map((_, index) => `default/${one?.name}/${path}/${index}`)
        })
        expect((found?.localRateLimit ?? []).map(({ id }) => id)).toEqual(expected)
      }),
      { numRuns: 100 },
    )
  })

  it('permit the requests that the rules of every level permit', () => {
    fc.assert(
      fc.property(policies, (all) => {
        const found = createPolicyWorld(all.map(objectOf)).index.policiesOf(place()).policies
        const ofLevels = targets.map((target) => {
          const one = winner(all, target, ({ rules }) => rules.length > 0)
          return permits([...(one?.rules ?? [])] as NonNullable<RoutePolicies['authorization']>['rules'])
        })
        expect(permits(found?.authorization?.rules ?? [])).toBe(!ofLevels.includes(false))
      }),
      { numRuns: 100 },
    )
  })

  it('do not depend on the order of objects or on previous calls', () => {
    const indexer = createPolicyIndexer()
    fc.assert(
      fc.property(policies, fc.infiniteStream(fc.nat()), (all, random) => {
        const order = all
          .map((one) => ({ one, key: random.next().value }))
          .toSorted((a, b) => a.key - b.key)
          .map(({ one }) => one)
        const [fresh, cached] = [
          createPolicyWorld(all.map(objectOf)),
          createPolicyWorld(order.map(objectOf), indexer),
        ]
        for (const rule of ['first', undefined]) {
          const at = place({ rule })
          expect(cached.index.policiesOf(at).policies).toEqual(fresh.index.policiesOf(at).policies)
        }
        expect(cached.index.statuses()).toEqual(fresh.index.statuses())
      }),
      { numRuns: 100 },
    )
  })
})
