import { compilePattern } from '../../../lib/pattern.ts'
import { enumeration, exactlyOne, type Infer, list, name, object, optional } from '../../../schema/dsl.ts'
import type { CompiledKind, Rejection } from '../guard.ts'
import { type Builtin, builtins, type Span } from './regex/builtins.ts'

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
  },
  { doc: 'Looks for patterns in the gateway itself.', example: { rules: [{ builtin: 'email' }] } },
)

export type RegexConfig = Infer<typeof regexSchema>
type RuleConfig = RegexConfig['rules'][number]

type Report = (path: (string | number)[], message: string) => void

/** Reports patterns that do not compile, and one that would match everywhere. */
export function checkRegex(config: RegexConfig, report: Report): void {
  for (const [index, { pattern }] of config.rules.entries()) {
    if (pattern === undefined) continue
    const compiled = compilePattern(pattern)
    if (!compiled.ok) report(['rules', index, 'pattern'], compiled.message)
    else if (compiled.test('')) report(['rules', index, 'pattern'], 'matches a text with nothing in it')
  }
}

/** A rule, compiled: whether something is found in a text, and the text without it. */
type Rule = { finds(text: string): boolean; mask(text: string): string }

/** Compiles the patterns; `rejection` is the answer to what is rejected. */
export function compileRegex({ action = 'mask', rules }: RegexConfig, rejection: Rejection): CompiledKind {
  const compiled = rules.map(compileRule)
  const reason = 'a pattern was found'
  return {
    audit: action === 'audit',
    failOpen: false,
    check({ texts }) {
      const isFound = texts.some(({ content }) => compiled.some(({ finds }) => finds(content)))
      if (!isFound) return { kind: 'allow' }
      if (action !== 'mask') return { kind: 'reject', rejection, reason }
      const contents = texts.map(({ content }) => compiled.reduce((rest, { mask }) => mask(rest), content))
      return { kind: 'modify', contents, reason }
    },
  }
}

function compileRule({ pattern, builtin }: RuleConfig): Rule {
  if (builtin !== undefined) return ruleOf(builtins[builtin])
  const compiled = compilePattern(pattern)
  if (!compiled.ok) throw new Error(compiled.message)
  return {
    // A match without characters, as of `\b`, is no find.
    finds: (text) => compiled.test(text) && compiled.replaceAll(text, '') !== text,
    mask: (text) => compiled.replaceAll(text, '<masked>'),
  }
}

function ruleOf({ label, find, isOne = () => true, within }: Builtin): Rule {
  if (within !== undefined) {
    return {
      finds: (text) => anyMatch(text, find, (match) => within(match).length > 0),
      mask: (text) => text.replace(find, (match) => replaced(match, within(match), label)),
    }
  }
  return {
    finds: (text) => anyMatch(text, find, isOne),
    mask: (text) => text.replace(find, (match) => (isOne(match) ? label : match)),
  }
}

function anyMatch(text: string, find: RegExp, isOne: (match: string) => boolean): boolean {
  for (const [match] of text.matchAll(find)) if (isOne(match)) return true
  return false
}

function replaced(match: string, spans: readonly Span[], label: string): string {
  let result = ''
  let copied = 0
  for (const { start, end } of spans) {
    result += match.slice(copied, start) + label
    copied = end
  }
  return result + match.slice(copied)
}
