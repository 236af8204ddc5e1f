import { RE2JS } from 're2js'
import { messageOf } from './thrown.ts'

/** A regular expression that runs in time linear in the text, safe for unreviewed patterns and texts. */
export type Pattern = {
  /** Whether any part of the text matches. */
  test(text: string): boolean
  /** Whether any part of the text has a non-empty match. */
  finds(text: string): boolean
  /**
   * Returns the text with every non-empty match replaced by the literal `replacement`; undefined without a
   * match. `test` runs first: a search without positions is 10 times as fast.
   */
  mask(text: string, replacement: string): string | undefined
  /** The first match with its groups, by number or name; a group without a match is empty. */
  first(text: string): FoundMatch | undefined
  /** Maximum microseconds per character of a text, estimated from the size of the program. */
  readonly cost: number
  /** Maximum nanoseconds per character of `test`. */
  readonly testCost: number
}

/** A match; `end` is exclusive. */
export type FoundMatch = {
  readonly start: number
  readonly end: number
  readonly group: (name: string) => string
}

export type CompiledPattern = ({ ok: true } & Pattern) | { ok: false; message: string }

const maxSourceLength = 4096

/**
 * Measured on texts in which every character matches, and on `(?:a?){30}a{30}`, in microseconds per
 * character.
 */
const costOfMatch = 0.8
const costOfInstruction = 0.016
/**
 * A test runs a lazily built state machine, 0-26 ns per character. For a pattern with counted repetition,
 * texts exist in which nearly every character adds a state: 510 ns were measured for a program of 42
 * instructions.
 */
const costOfTest = 25
const costOfStateInstruction = 12
const maxCounted = 12

function testCostOf(source: string, programSize: number): number {
  const counts = source.matchAll(/\{(\d+)(?:,(\d*))?\}/g)
  const counted = counts.reduce((sum, [, least, most]) => sum + Number(most || least), 0)
  const classes = source.match(/\\[dDwWsSpP]|\[(?:\\.|[^\]\\])+\]|\./g) ?? []
  if (counted + classes.length <= maxCounted || beginsOnce(source)) return costOfTest
  return costOfTest + costOfStateInstruction * programSize
}

/**
 * Whether the pattern starts with a character that it cannot match again, as `sk-[A-Za-z0-9]{48}`, so that
 * only one match is in progress.
 */
function beginsOnce(source: string): boolean {
  const sign = /^[A-Za-z0-9]*([-_:@#/ ])/.exec(source)
  if (sign === null) return false
  const rest = source.slice(sign[0].length).replaceAll(/[A-Za-z0-9]-[A-Za-z0-9]/g, '')
  return !/[.^|]|\\[^dbn]|\[[^\]]*-[^\]]*\]/.test(rest) && !rest.includes(sign[1] ?? '')
}

/**
 * Compiles a pattern in RE2 syntax (https://github.com/google/re2/wiki/Syntax): no look-around, no back
 * references.
 */
export function compilePattern(source: string): CompiledPattern {
  if (source.length > maxSourceLength) {
    return { ok: false, message: `regular expression is longer than ${maxSourceLength} characters` }
  }
  try {
    const compiled = RE2JS.compile(source)
    return {
      ok: true,
      test: (text) => compiled.test(text),
      finds(text) {
        if (!compiled.test(text)) return false
        const matcher = compiled.matcher(text)
        while (matcher.find()) if (matcher.end() > matcher.start()) return true
        return false
      },
      mask(text, replacement) {
        if (!compiled.test(text)) return undefined
        let found = false
        const masked = compiled.matcher(text).replaceAll((match: string) => {
          if (match === '') return ''
          found = true
          return replacement
        })
        return found ? masked : undefined
      },
      first(text) {
        const matcher = compiled.matcher(text)
        if (!matcher.find()) return undefined
        const count = matcher.groupCount()
        const names = compiled.namedGroups()
        return {
          start: matcher.start(),
          end: matcher.end(),
          group(name) {
            const named = Object.hasOwn(names, name) ? names[name] : undefined
            const index = /^\d{1,4}$/.test(name) ? Number(name) : named
            return index === undefined || index > count ? '' : (matcher.group(index) ?? '')
          },
        }
      },
      testCost: testCostOf(source, compiled.programSize()),
      cost: costOfMatch + costOfInstruction * compiled.programSize(),
    }
  } catch (error) {
    const reason = messageOf(error)
    return { ok: false, message: `invalid regular expression "${source}": ${reason}` }
  }
}

/**
 * Cache of patterns that come with requests, limited to the latest `limit`. Returns undefined for an invalid
 * pattern.
 */
export function createPatternCache(limit: number): (source: string) => Pattern | undefined {
  const patterns = new Map<string, Pattern | undefined>()
  return (source) => {
    const known = patterns.get(source)
    if (known !== undefined || patterns.has(source)) return known
    const compiled = compilePattern(source)
    const pattern = compiled.ok ? compiled : undefined
    if (patterns.size >= limit) forgetOldest(patterns)
    patterns.set(source, pattern)
    return pattern
  }
}

function forgetOldest(patterns: Map<string, unknown>) {
  for (const source of patterns.keys()) {
    patterns.delete(source)
    return
  }
}
