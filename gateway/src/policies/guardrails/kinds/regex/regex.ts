import { compilePattern } from '../../../../lib/pattern.ts'
import type { ThreadPool } from '../../../../lib/scheduling/thread-pool.ts'
import { enumeration, exactlyOne, type Infer, list, name, object, optional } from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import { CheckFailure, type CompiledKind, type Rejection, type Verdict } from '../../guard.ts'
import { compileSearch } from './search.ts'
import { type SearchResult, searchIn, searchOnThread } from './task.ts'

const rule = exactlyOne(
  {
    pattern: name({ doc: 'RE2 pattern; what matches is replaced by `<masked>`.', example: 'ACME-[0-9]{6}' }),
    builtin: enumeration(['email', 'phoneNumber', 'creditCard', 'ssn', 'caSin'], {
      doc: 'Something well known; it is replaced by its name, as `<EMAIL_ADDRESS>`.',
    }),
  },
  {},
  { doc: 'What is looked for.' },
)

/** `regex`: looks for patterns in the gateway itself, without asking anybody. */
export const regexSchema = object(
  {
    action: optional(
      enumeration(['mask', 'reject', 'audit'], {
        doc: 'What happens to content in which something is found; `audit` only notes it.',
        default: 'mask',
      }),
    ),
    rules: list(rule, { doc: 'What is looked for, in order.' }, { min: 1, max: 256 }),
    failureMode: optional(
      enumeration(['failClosed', 'failOpen', 'FailClosed', 'FailOpen'], {
        doc: 'Whether content passes when it cannot be searched: characters times rules above 268435456, more than 10 s, or too many large texts at once.',
        default: 'failClosed',
      }),
    ),
  },
  { doc: 'Looks for patterns in the gateway itself.', example: { rules: [{ builtin: 'email' }] } },
)

export type RegexConfig = Infer<typeof regexSchema>

/** Reports patterns that do not compile, and one that would match everywhere. */
export function checkRegex(config: RegexConfig, report: ReportIssue): void {
  for (const [index, { pattern }] of config.rules.entries()) {
    if (pattern === undefined) continue
    const compiled = compilePattern(pattern)
    if (!compiled.ok) report(['rules', index, 'pattern'], compiled.message)
    else if (compiled.test('')) report(['rules', index, 'pattern'], 'matches a text with nothing in it')
  }
}

/** Most work on the thread that serves traffic, in microseconds; more goes to another thread. */
const maxInlineWork = 10_000
/** Most characters times rules of one check: 32 MiB with 8 rules. */
const maxWork = 256 * 1024 * 1024

/** Compiles the patterns; `rejection` is the answer to what is rejected. */
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
