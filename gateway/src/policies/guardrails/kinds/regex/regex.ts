import { compilePattern } from '../../../../lib/pattern.ts'
import type { ThreadPool } from '../../../../lib/scheduling/thread-pool.ts'
import { enumeration, exactlyOne, type Infer, list, name, object, optional } from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import { CheckFailure, type CompiledKind, type Rejection, type Verdict } from '../../guard.ts'
import { compileSearch } from './search.ts'
import { type SearchResult, searchIn, searchOnThread } from './task.ts'

/** `pattern` of a rule. */
export const patternSchema = name({
  doc: 'RE2 pattern. Matches are replaced by `<masked>`.',
  example: 'ACME-[0-9]{6}',
})

/** Names of built-in patterns. */
export const builtinNames = ['email', 'phoneNumber', 'creditCard', 'ssn', 'caSin'] as const

const rule = exactlyOne(
  {
    pattern: patternSchema,
    builtin: enumeration(builtinNames, {
      doc: 'Built-in pattern. Matches are replaced by its name, for example `<EMAIL_ADDRESS>`.',
    }),
  },
  {},
  { doc: 'Rule.' },
)

/** `regex`: pattern search in the gateway process. */
export const regexSchema = object(
  {
    action: optional(
      enumeration(['mask', 'reject', 'audit'], {
        doc: 'Action on content with a match; `audit` only records it.',
        default: 'mask',
      }),
    ),
    rules: list(rule, { doc: 'Rules, applied in order.' }, { min: 1, max: 256 }),
    failureMode: optional(
      enumeration(['failClosed', 'failOpen', 'FailClosed', 'FailOpen'], {
        doc: 'Behaviour if the search fails: more than 268435456 characters times rules, more than 10 s, or too many concurrent large texts. `failOpen` allows the content.',
        default: 'failClosed',
      }),
    ),
  },
  { doc: 'Pattern search in the gateway process.', example: { rules: [{ builtin: 'email' }] } },
)

export type RegexConfig = Infer<typeof regexSchema>

/** Reports patterns that do not compile or match the empty text. */
export function checkRegex(config: RegexConfig, report: ReportIssue): void {
  for (const [index, { pattern }] of config.rules.entries()) {
    if (pattern === undefined) continue
    const compiled = compilePattern(pattern)
    if (!compiled.ok) report(['rules', index, 'pattern'], compiled.message)
    else if (compiled.test('')) report(['rules', index, 'pattern'], 'must not match the empty text')
  }
}

/** Maximum work on the main thread, in microseconds. More work runs on a worker thread. */
const maxInlineWork = 10_000
/** Maximum characters times rules of one check: 32 MiB with 8 rules. */
const maxWork = 256 * 1024 * 1024

/** Compiles the patterns. `rejection` is the response to rejected content. */
export function compileRegex(
  { action = 'mask', rules, failureMode }: RegexConfig,
  rejection: Rejection,
  threads: ThreadPool,
): CompiledKind {
  const search = compileSearch(rules)
  const masks = action === 'mask'
  const reason = 'a pattern was found'

  function verdictOf({ found, masked }: SearchResult): Verdict {
    if (!found) return { kind: 'allow' }
    return masked === undefined
      ? { kind: 'reject', rejection, reason }
      : { kind: 'modify', contents: masked, reason }
  }

  return {
    audit: action === 'audit',
    failOpen: failureMode === 'failOpen' || failureMode === 'FailOpen',
    check({ texts: shown }) {
      const texts = shown.map(({ content }) => content)
      const length = texts.reduce((sum, text) => sum + text.length, 0)
      if (length * search.cost <= maxInlineWork) return verdictOf(searchIn(search, masks, texts))
      if (length * rules.length > maxWork) throw new CheckFailure('text too long for its rules')
      return searchOnThread(threads, { rules, masks, texts }).then(verdictOf)
    },
  }
}
