import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { celScopes } from '../../src/admin/cel/scopes.ts'
import { callableNames } from '../../src/cel/check-names.ts'
import { membersOf } from '../../src/cel/members.ts'
import { celVariablesOf } from '../../src/policies/registry/cel-variables.ts'

// The tables of docs/expressions.md list every function and every variable.

const page = readFileSync(new URL('../../../docs/expressions.md', import.meta.url), 'utf8')

const [, functions = ''] = page.split('## Functions')
const variables = page.slice(page.indexOf('## Variables'), page.indexOf('## Functions'))

/** Rows of a table as the codes of their cells. */
function codes(text: string): string[][][] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line.split('|').map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)),
    )
}

const macros = ['all', 'exists', 'exists_one', 'filter', 'has', 'map']

describe('the tables of expressions', () => {
  it('list the functions', () => {
    const listed = codes(functions.split('```cel')[0] ?? '').flatMap((cells) => cells[2] ?? [])
    const named = callableNames().map(({ name }) => name)
    expect([...listed, ...macros].sort()).toEqual([...named].sort())
  })

  it('list the variables with their members', () => {
    const listed = new Map<string, string[]>()
    for (const [, roots = [], members = []] of codes(variables)) {
      for (const root of roots) listed.set(root, [...(listed.get(root) ?? []), ...members])
    }
    const sets = [
      ...celScopes.map((scope) => scope.variables),
      ...(['http', 'llm', 'mcp', 'ui'] as const).flatMap((kind) => [
        celVariablesOf(kind, 'reply'),
        celVariablesOf(kind, 'end'),
      ]),
    ]
    const known = new Set(sets.flatMap((set) => [...set]))
    const roots = [...known].filter((name) => !name.includes('.'))
    expect([...listed.keys()].sort()).toEqual(roots.sort())
    for (const root of roots) {
      const members = membersOf(root, known)
      if (typeof members === 'string') continue
      const missing = Object.keys(members).filter(
        (name) => !listed.get(root)?.some((member) => member.split('.', 1)[0] === name),
      )
      expect([root, missing]).toEqual([root, []])
    }
  })
})
