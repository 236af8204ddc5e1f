import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KeyValue } from '../../../../api/llm/keys.ts'
import { draftOf, emptyDraft, mistakesIn, recordOf } from './key-draft.ts'

const text = fc.string({ minLength: 1, maxLength: 20 })
const patterns = fc.array(text, { maxLength: 3 })

const values: fc.Arbitrary<KeyValue> = fc.record(
  {
    metadata: fc.dictionary(
      text.filter((name) => !['name', 'user', 'group', 'id', '__proto__'].includes(name)),
      fc.oneof(text, fc.integer(), fc.boolean(), fc.constant({ nested: [1] })),
      { minKeys: 1, maxKeys: 3 },
    ),
    expiresAt: fc.constantFrom('2027-01-31T00:00:00Z', '2027-01-31T00:00:12.5+02:00'),
    disabled: fc.constant(true),
    allowedModels: patterns,
    allowedTargets: patterns,
    limits: fc.array(
      fc.constantFrom(
        { requests: 60, unit: 'Minutes' as const, burst: 20 },
        { tokens: 500_000, unit: 'Hours' as const },
      ),
      { minLength: 1, maxLength: 2 },
    ),
    budgets: fc.constantFrom(
      [{ name: 'a', limit: { unit: 'USD' as const, amount: 25.5 }, window: { calendar: 'month' as const } }],
      [
        {
          name: 'b',
          limit: { unit: 'Tokens' as const, amount: 1_000 },
          window: { calendar: 'week' as const, timeZone: 'Europe/Berlin' },
          onBudgetExceeded: 'Audit' as const,
          warnAt: 0.85,
        },
        { name: 'c', limit: { unit: 'Tokens' as const, amount: 1 }, window: { rolling: '36h' } },
      ],
    ),
  },
  { requiredKeys: [] },
)

describe('the draft of a key', () => {
  it('restores every record that is not edited, members without a field included', () => {
    fc.assert(
      fc.property(values, (value) => {
        const stored = { key: '***', ...value } as KeyValue
        const draft = draftOf(stored)
        expect(recordOf(draft, stored)).toEqual(stored)
        expect([...mistakesIn(draft)]).toEqual([])
      }),
    )
  })

  it('omits empty fields', () => {
    expect(recordOf(emptyDraft, {})).toEqual({})
    expect(recordOf({ ...emptyDraft, name: 'ci', models: [] }, {})).toEqual({
      metadata: { name: 'ci' },
      allowedModels: [],
    })
  })

  it('reports amounts, names and durations that the gateway refuses', () => {
    const limit = { of: 'tokens', amount: '0', unit: 'Hours', burst: 'x' } as const
    const budget = { ...draftOf({}), name: '', unit: 'USD', amount: '0', window: 'soon' } as const
    const mistakes = mistakesIn({
      ...emptyDraft,
      metadata: [{ name: 'user', value: 'a' }],
      limits: [limit],
      budgets: [{ ...budget, timeZone: '', action: 'Block', warnAt: '101' }],
    })
    expect([...mistakes.keys()]).toEqual([
      'metadata.0',
      'limits.0.amount',
      'limits.0.burst',
      'budgets.0.name',
      'budgets.0.amount',
      'budgets.0.window',
      'budgets.0.warnAt',
    ])
  })
})
