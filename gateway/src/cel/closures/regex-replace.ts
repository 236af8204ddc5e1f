import { compilePattern, type createPatternCache, type Pattern } from '../../lib/pattern.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import type { Evaluate } from './representation.ts'
import { noOverload } from './values.ts'

type Context = {
  /** The pattern if it is a constant, else undefined. */
  readonly constant: unknown
  readonly patterns: ReturnType<typeof createPatternCache>
}

/** Work units of compiling a pattern of a request, per character. */
export const costOfPatternText = 1_000

/**
 * Compiles `text.regexReplace(pattern, replacement)`: replaces the first match. `$1`, `$name` and `${name}`
 * in the replacement are groups of the match, `$$` is a dollar sign.
 */
export function compileRegexReplace(
  [text, source, replacement]: readonly [Evaluate, Evaluate, Evaluate],
  { constant, patterns }: Context,
): Evaluate {
  const compiled = typeof constant === 'string' ? compilePattern(constant) : undefined
  const known = compiled?.ok ? compiled : undefined
  return (variables) => {
    const subject = text(variables)
    const pattern = known ?? readPattern(source(variables), patterns)
    const fresh = replacement(variables)
    if (pattern instanceof Failure) return pattern
    if (typeof subject !== 'string' || typeof fresh !== 'string')
      return noOverload('regexReplace', subject, fresh)
    spendWork(subject.length * pattern.testCost + fresh.length * 20)
    if (!pattern.test(subject)) return subject
    spendWork(subject.length * pattern.cost * 1000)
    const found = pattern.first(subject)
    if (found === undefined) return subject
    const inserted = expand(fresh, found.group)
    spendWork(subject.length + inserted.length)
    return subject.slice(0, found.start) + inserted + subject.slice(found.end)
  }
}

function readPattern(source: unknown, patterns: Context['patterns']): Pattern | Failure {
  if (typeof source !== 'string') return noOverload('regexReplace', source)
  spendWork(source.length * costOfPatternText)
  return patterns(source) ?? new Failure('invalid regular expression')
}

function expand(replacement: string, group: (name: string) => string): string {
  if (!replacement.includes('$')) return replacement
  return replacement.replaceAll(
    /\$(?:\$|\{([^}]*)\}|(\w+))/g,
    (all: string, braced?: string, plain?: string) => {
      if (all === '$$') return '$'
      const text = group(braced ?? plain ?? '')
      spendWork(text.length)
      return text
    },
  )
}
