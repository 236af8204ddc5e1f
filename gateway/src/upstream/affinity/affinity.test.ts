import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { checkNamedBackends } from '../check.ts'
import { chooseSticky, compileAffinity, digestOf } from './affinity.ts'

const names = ['a:1', 'b:1', 'c:1', 'd:1']
const digests = names.map(digestOf)
const sessions = Array.from({ length: 4_000 }, (_, index) => digestOf(`session-${index}`))

function items(weights: readonly number[], ejected: readonly string[] = []) {
  return names.map((name, index) => ({
    name,
    weight: weights[index] ?? 1,
    health: { isEjected: () => ejected.includes(name) },
  }))
}

const choose = (all: ReturnType<typeof items>) =>
  sessions.map((session) => chooseSticky(all, digests, session)?.name)

const count = (chosen: readonly (string | undefined)[], name: string) =>
  chosen.filter((one) => one === name).length

describe('chooseSticky', () => {
  it('distributes sessions by weight', () => {
    const chosen = choose(items([4, 2, 1, 1]))
    const shares = names.map((name) => count(chosen, name) / sessions.length)
    for (const [index, share] of [0.5, 0.25, 0.125, 0.125].entries())
      expect(Math.abs((shares[index] ?? 0) - share)).toBeLessThan(0.05)
  })

  it('moves only the sessions of an ejected item', () => {
    const before = choose(items([1, 1, 1, 1]))
    const after = choose(items([1, 1, 1, 1], ['b:1']))
    const moved = before.filter((name, index) => name !== after[index])
    expect(new Set(moved)).toEqual(new Set(['b:1']))
    expect(count(after, 'b:1')).toBe(0)
    for (const name of ['a:1', 'c:1', 'd:1']) expect(count(after, name)).toBeGreaterThan(count(before, name))
  })

  it('selects nothing if all are ejected or disabled', () => {
    expect(chooseSticky(items([1, 1, 1, 0], names.slice(0, 3)), digests, 7)).toBeUndefined()
    expect(chooseSticky([], [], 7)).toBeUndefined()
  })
})

describe('compileAffinity', () => {
  const { facts } = fixtureExchange({ headers: { 'x-session-id': 's', empty: '' } })

  it.each(['request.headers["x-session-id"]', 'bytes(request.headers["x-session-id"])'])(
    'reads the session of %s',
    (source) => {
      expect(compileAffinity({ source })(facts)).toBe(digestOf('s'))
    },
  )

  it.each(['request.headers["absent"]', 'request.headers["empty"]', '1', 'null', '["s"]', '1 / 0 > 0'])(
    'finds no session in %s',
    (source) => {
      expect(compileAffinity({ source })(facts)).toBeUndefined()
    },
  )
})

describe('checkNamedBackends', () => {
  it('reports sessions of one server and unknown variables', () => {
    const policies = { sessionAffinity: { source: 'absent.id' } }
    const issues: string[] = []
    checkNamedBackends([{ name: 'one', host: 'a:1', policies }], (path, message) =>
      issues.push(`${path.join('.')}: ${message}`),
    )
    expect(issues).toEqual([
      '0.policies.sessionAffinity: must be on a backend with endpoints: it selects one of them',
      expect.stringContaining('0.policies.sessionAffinity.source: '),
    ])
  })
})
