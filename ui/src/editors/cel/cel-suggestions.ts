import type { Suggestion, Suggestions } from '../code-editor.tsx'
import type { CelVariable, CelVocabulary } from './vocabulary.ts'

/** Variables in scope: those of the roots, else of the named scope, else of all scopes. */
export function variablesOf(
  { scopes }: CelVocabulary,
  roots: readonly string[] | undefined,
  scope: string | undefined,
): readonly CelVariable[] {
  const named = scopes.filter(({ name }) => name === scope)
  const all = (named.length > 0 ? named : scopes).flatMap(({ variables }) => variables)
  const names = roots && new Set(roots.map((root) => root.split('.')[0]))
  const found = new Map<string, CelVariable>()
  for (const variable of all)
    if (names === undefined || names.has(variable.name)) {
      const before = found.get(variable.name)
      if (before === undefined || count(variable) > count(before)) found.set(variable.name, variable)
    }
  return [...found.values()]
}

function count({ members = [] }: CelVariable): number {
  return members.length
}

/** Suggestions at an offset: members after a dot, else variables and functions. Nothing inside of texts. */
export function suggestCel(
  text: string,
  offset: number,
  variables: readonly CelVariable[],
  functions: CelVocabulary['functions'],
): Suggestions | undefined {
  const before = text.slice(0, offset)
  if (isInText(before)) return undefined
  const [path = ''] = /[A-Za-z_][\w.]*$/.exec(before) ?? []
  const steps = path.split('.')
  const typed = steps.pop() ?? ''
  const from = offset - typed.length
  if (steps.length === 0) {
    if (/\.\s*$/.test(before)) return { from, items: methodsOf(functions) }
    return { from, items: [...variables.map(toSuggestion), ...functionsOf(functions)] }
  }
  const members = steps.reduce<readonly CelVariable[]>(
    (here, step) => here.find(({ name }) => name === step)?.members ?? [],
    variables,
  )
  return { from, items: [...members.map(toSuggestion), ...methodsOf(functions)] }
}

function toSuggestion({ name, doc, members, open }: CelVariable): Suggestion {
  return {
    label: name,
    kind: 'variable',
    info: doc,
    ...(members ? { detail: 'object' } : open ? { detail: 'any' } : {}),
  }
}

const method = /^(?:x|list|map|text)\./

function functionsOf(functions: CelVocabulary['functions']): readonly Suggestion[] {
  return suggestionsOf(functions, (form) => !method.test(form))
}

function methodsOf(functions: CelVocabulary['functions']): readonly Suggestion[] {
  return suggestionsOf(functions, (form) => method.test(form))
}

function suggestionsOf(
  functions: CelVocabulary['functions'],
  fits: (form: string) => boolean,
): readonly Suggestion[] {
  return functions.flatMap(({ name, forms }) => {
    const form = forms.find(fits)
    if (form === undefined) return []
    return [{ label: name, detail: form, insert: `${name}(`, kind: 'function' as const }]
  })
}

/** Whether the end of an expression is inside of a quoted text. */
function isInText(before: string): boolean {
  let quote: string | undefined
  for (let index = 0; index < before.length; index++) {
    const character = before[index]
    if (quote !== undefined && character === '\\') index++
    else if (character === quote) quote = undefined
    else if (quote === undefined && (character === '"' || character === "'")) quote = character
  }
  return quote !== undefined
}
