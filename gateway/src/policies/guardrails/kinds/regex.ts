import { compilePattern } from '../../../lib/pattern.ts'
import { enumeration, exactlyOne, type Infer, list, name, object, optional } from '../../../schema/dsl.ts'
import type { CompiledKind, Rejection } from '../guard.ts'
import { type Builtin, builtins } from './regex/builtins.ts'

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

type Mask = (text: string) => string

/** Compiles the patterns; `rejection` is the answer to what is rejected. */
export function compileRegex({ action = 'mask', rules }: RegexConfig, rejection: Rejection): CompiledKind {
  const masks = rules.map(compileRule)
  const masked: Mask = (text) => masks.reduce((rest, mask) => mask(rest), text)
  return {
    audit: action === 'audit',
    failOpen: false,
    check({ texts }) {
      const contents = texts.map(({ content }) => masked(content))
      if (contents.every((content, index) => content === texts[index]?.content)) return { kind: 'allow' }
      const reason = 'a pattern was found'
      return action === 'reject'
        ? { kind: 'reject', rejection, reason }
        : { kind: 'modify', contents, reason }
    },
  }
}

function compileRule({ pattern, builtin }: RuleConfig): Mask {
  if (builtin !== undefined) return maskOf(builtins[builtin])
  const compiled = compilePattern(pattern)
  if (!compiled.ok) throw new Error(compiled.message)
  return (text) => (compiled.test(text) ? compiled.replaceAll(text, '<masked>') : text)
}

function maskOf({ label, find, isOne }: Builtin): Mask {
  return (text) => text.replace(find, (match) => (isOne === undefined || isOne(match) ? label : match))
}
