/** Most characters of a model name, of clients and of the configuration: ids of responses contain it. */
export const maxModelLength = 512

/** A model name of the configuration: exact, `*`, `prefix*` or `*suffix`. */
export type NamePattern = {
  readonly exact: boolean
  /** Number of characters other than `*`; a larger number is more specific. */
  readonly literals: number
  matches(name: string): boolean
}

/** The issue of an invalid name pattern, else undefined. */
export function namePatternIssue(name: string): string | undefined {
  const star = name.indexOf('*')
  if (star === -1) return undefined
  if (name.indexOf('*', star + 1) !== -1) return `only one * is allowed in a model name, got "${name}"`
  if (star !== 0 && star !== name.length - 1)
    return `the * of a model name must be its first or last character, got "${name}"`
  return undefined
}

export function compileNamePattern(name: string): NamePattern {
  if (name === '*') return { exact: false, literals: 0, matches: () => true }
  const literal = name.replace('*', '')
  const literals = literal.length
  if (literals === name.length) return { exact: true, literals, matches: (candidate) => candidate === name }
  if (name.startsWith('*'))
    return { exact: false, literals, matches: (candidate) => candidate.endsWith(literal) }
  return { exact: false, literals, matches: (candidate) => candidate.startsWith(literal) }
}
