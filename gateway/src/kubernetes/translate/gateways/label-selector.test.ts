import { describe, expect, it } from 'vitest'
import { matchesSelector, selectorMistake } from './label-selector.ts'

const matches = (operator: string, values: readonly string[], labels: Readonly<Record<string, string>>) =>
  matchesSelector({ matchExpressions: [{ key: 'stage', operator, values }] }, labels)

describe('matchesSelector', () => {
  it('matches labels without the key for NotIn and DoesNotExist only', () => {
    expect(
      ['In', 'NotIn', 'Exists', 'DoesNotExist'].map((operator) => matches(operator, ['test'], {})),
    ).toEqual([false, true, false, true])
  })

  it('compares values of labels with the key', () => {
    const labels = { stage: 'test' }
    expect(matches('In', ['test', 'live'], labels)).toBe(true)
    expect(matches('In', ['live'], labels)).toBe(false)
    expect(matches('NotIn', ['test'], labels)).toBe(false)
    expect(matches('NotIn', ['live'], labels)).toBe(true)
  })

  it('requires all demands', () => {
    const selector = {
      matchLabels: { team: 'a' },
      matchExpressions: [{ key: 'stage', operator: 'Exists' }],
    }
    expect(matchesSelector(selector, { team: 'a', stage: '' })).toBe(true)
    expect(matchesSelector(selector, { team: 'a' })).toBe(false)
    expect(matchesSelector(selector, { team: 'b', stage: '' })).toBe(false)
  })

  it('matches everything if it is empty, nothing if it is absent or unknown', () => {
    expect(matchesSelector({}, {})).toBe(true)
    expect(matchesSelector(undefined, {})).toBe(false)
    expect(matches('Like', ['test'], { stage: 'test' })).toBe(false)
  })

  it('does not read inherited members', () => {
    expect(matchesSelector({ matchExpressions: [{ key: 'constructor', operator: 'Exists' }] }, {})).toBe(
      false,
    )
  })
})

describe('selectorMistake', () => {
  it('reports operators and values that do not fit', () => {
    const mistake = (operator: string, values?: readonly string[]) =>
      selectorMistake({ matchExpressions: [{ key: 'a', operator, ...(values && { values }) }] })
    expect(mistake('In', ['1'])).toBeUndefined()
    expect(mistake('Exists')).toBeUndefined()
    expect(mistake('In')).toContain('values must have an entry')
    expect(mistake('Exists', ['1'])).toContain('values must be empty')
    expect(mistake('Like', ['1'])).toContain('operator must be')
  })
})
