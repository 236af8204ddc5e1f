import { compilePattern } from '../../../../lib/pattern.ts'
import { type Builtin, type BuiltinName, builtins, type Span } from './builtins.ts'

/** Pattern or name of a built-in. */
export type RuleConfig = { pattern?: string | undefined; builtin?: BuiltinName | undefined }

/** Compiled rules. */
export type Search = {
  /** Whether a rule matches. */
  finds(texts: readonly string[]): boolean
  /** Returns the texts with replacements, applied rule by rule; undefined without a match. */
  mask(texts: readonly string[]): string[] | undefined
  /** Maximum microseconds per character. */
  readonly cost: number
}

/** Microseconds per character of a built-in, measured on digits and blanks. */
const costOfBuiltin = 0.25

type Rule = {
  finds(text: string): boolean
  /** Undefined without a match. */
  mask(text: string): string | undefined
  readonly cost: number
}

/** Compiles rules. Throws if a pattern does not compile. */
export function compileSearch(rules: readonly RuleConfig[]): Search {
  const compiled = rules.map(compileRule)
  return {
    finds: (texts) => texts.some((text) => compiled.some(({ finds }) => finds(text))),
    mask(texts) {
      let found = false
      const masked = texts.map((text) => {
        let rest = text
        for (const { mask } of compiled) {
          const now = mask(rest)
          if (now === undefined) continue
          found = true
          rest = now
        }
        return rest
      })
      return found ? masked : undefined
    },
    cost: compiled.reduce((sum, { cost }) => sum + cost, 0),
  }
}

function compileRule({ pattern, builtin }: RuleConfig): Rule {
  if (builtin !== undefined) return ruleOf(builtins[builtin])
  const compiled = compilePattern(pattern ?? '')
  if (!compiled.ok) throw new Error(compiled.message)
  const { finds, mask, cost } = compiled
  return { finds, mask: (text) => mask(text, '<masked>'), cost }
}

function ruleOf({ label, find, isOne = () => true, within }: Builtin): Rule {
  const spansOf = within ?? ((match: string) => (isOne(match) ? [{ start: 0, end: match.length }] : []))
  return {
    finds(text) {
      for (const [match] of text.matchAll(find)) if (spansOf(match).length > 0) return true
      return false
    },
    mask(text) {
      let found = false
      const masked = text.replace(find, (match) => {
        const spans = spansOf(match)
        if (spans.length === 0) return match
        found = true
        return replaced(match, spans, label)
      })
      return found ? masked : undefined
    },
    cost: costOfBuiltin,
  }
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
