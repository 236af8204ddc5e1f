import { describe, expect, it } from 'vitest'
import { compileCheckedCel } from '../cel/checked.ts'
import { explainRules, type RuleKind } from './rules.ts'

const variables: ReadonlySet<string> = new Set(['jwt'])

function rulesOf(...rules: [kind: RuleKind, source: string][]) {
  return rules.map(([kind, source], index) => ({
    name: `${kind} rule ${index + 1}`,
    kind,
    program: compileCheckedCel(source, variables),
  }))
}

describe('explainRules', () => {
  it('describes value, error and effect of each rule', () => {
    const rules = rulesOf(['deny', 'jwt.sub == "ada"'], ['require', 'jwt.admin'], ['allow', 'false'])
    expect(explainRules(rules, { jwt: { sub: 'ada' } })).toEqual([
      { rule: 'deny rule 1', expression: 'jwt.sub == "ada"', value: true, refuses: true },
      { rule: 'require rule 2', expression: 'jwt.admin', error: 'no such key: admin', refuses: true },
      { rule: 'allow rule 3', expression: 'false', value: false, refuses: false },
    ])
  })

  it.each([
    ['a missing key', 'jwt.scopes[jwt.email]'],
    ['an index', '[1, 2][int(jwt.pin)]'],
    ['a conversion', 'int(jwt.email) == 1'],
    ['a timestamp of the library', 'timestamp(jwt.email) < timestamp("2026-01-01T00:00:00Z")'],
    ['a duration of the library', 'duration(jwt.email) > duration("1s")'],
    ['bytes of the library', 'b"x" != bytes(jwt.email) && jwt[jwt.email] == 1'],
    ['a pattern', '"x".matches(jwt.pattern)'],
  ])('does not describe values in errors of %s', (_, source) => {
    const jwt = { email: 'canary@example.com', pin: '71077345', scopes: {}, pattern: '(canary' }
    const [described] = explainRules(rulesOf(['deny', source]), { jwt })
    expect(described).toMatchObject({ error: expect.any(String), refuses: true })
    expect(JSON.stringify({ ...described, expression: '' })).not.toMatch(/canary|71077345/)
  })

  it('ends rules with too much work', () => {
    const source = 'jwt.list.all(x, jwt.list.all(y, x + y != "0"))'
    const jwt = { list: Array.from({ length: 2_000 }, (_, index) => `${index}`.padEnd(1_000, 'x')) }
    const described = explainRules(rulesOf(['deny', source], ['deny', 'true']), { jwt })
    expect(described[0]).toMatchObject({ error: expect.stringContaining('too m') })
  })

  it('lists at most 20 rules with short expressions', () => {
    const source = `"${'x'.repeat(400)}" == ""`
    const described = explainRules(
      rulesOf(...Array.from({ length: 30 }, () => ['deny', source] as [RuleKind, string])),
      {},
    )
    expect(described).toHaveLength(20)
    expect(String(described[0]?.['expression']).length).toBe(301)
  })
})
