import { compileCel } from './cel.ts'
import { callableNames } from './check-names.ts'
import { parseCustomFunctions, withCustomFunctions } from './custom-functions.ts'

const maxLength = 64 * 1024

/**
 * Reports the first error of `config.customFunctions`, with its line and column. `roots` are the variables of
 * all places; each expression checks its functions again with its own.
 */
export function checkCustomFunctions(
  text: string,
  roots: ReadonlySet<string>,
  report: (message: string) => void,
): void {
  const found = text.length > maxLength ? `must have at most ${maxLength} characters` : mistakeIn(text, roots)
  if (found !== undefined) report(found)
}

function mistakeIn(text: string, roots: ReadonlySet<string>): string | undefined {
  const parsed = parseCustomFunctions(text)
  if (parsed.kind === 'issue') return withPlace(text, parsed)
  const builtIn = new Set(callableNames().map(({ name }) => name))
  for (const each of parsed.functions) {
    const { name, body, parameters, rest, isMethod, offset, bodyOffset } = each
    if (builtIn.has(name))
      return withPlace(text, { message: `${name} is a function of CEL: rename it`, offset })
    const own = [...parameters, ...(rest === undefined ? [] : [rest]), ...(isMethod ? ['this'] : [])]
    const others = [...roots].filter((root) => !own.includes(root.split('.', 1)[0] ?? ''))
    const compiled = compileCel(withCustomFunctions(body, parsed.functions), new Set([...others, ...own]))
    if (compiled.kind === 'program') continue
    const before = body.split('\n').slice(0, compiled.line - 1)
    const at = before.reduce((sum, { length }) => sum + length + 1, bodyOffset) + compiled.column - 1
    return withPlace(text, { message: `function ${name}: ${compiled.message}`, offset: at })
  }
  return undefined
}

function withPlace(text: string, { message, offset }: { message: string; offset: number }): string {
  const before = text.slice(0, offset).split('\n')
  return `${message} (line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1} of the functions)`
}
