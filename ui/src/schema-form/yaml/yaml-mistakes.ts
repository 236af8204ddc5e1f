import { type Document, isMap, isNode, isPair, isScalar, LineCounter, parseDocument } from 'yaml'
import type { EditorMistake } from '../../editors/code-editor.tsx'
import { checkValue, type FieldMistake } from '../model/check.ts'
import { labelOf } from '../model/label.ts'
import type { JsonSchema } from '../model/schema.ts'
import type { FieldPath } from '../model/value.ts'

/** Text as YAML: its value, or the syntax errors. */
export type ParsedYaml =
  | { readonly kind: 'value'; readonly value: unknown; readonly document: Document }
  | { readonly kind: 'invalid'; readonly mistakes: readonly EditorMistake[]; readonly message: string }

/** More aliases than this are refused: each may repeat a large part. */
const maxAliases = 100

export function parseYaml(text: string): ParsedYaml {
  const lines = new LineCounter()
  const document = parseDocument(text, { uniqueKeys: true, lineCounter: lines })
  const mistakes = document.errors.map(({ pos: [from, to], message }) => ({
    from,
    to,
    message: message.split('\n')[0] ?? message,
  }))
  const [first] = mistakes
  if (first) {
    const { line } = lines.linePos(first.from)
    return { kind: 'invalid', mistakes, message: `The YAML is not valid in line ${line}: ${first.message}` }
  }
  try {
    return { kind: 'value', value: document.toJS({ maxAliasCount: maxAliases }), document }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { kind: 'invalid', mistakes: [{ from: 0, to: 0, message }], message }
  }
}

/** Syntax errors, or violations of the schema, at their place in the text. */
export function yamlMistakes(text: string, schema: JsonSchema): readonly EditorMistake[] {
  const parsed = parseYaml(text)
  if (parsed.kind === 'invalid') return parsed.mistakes
  return placeMistakes(parsed.document, checkValue(parsed.value ?? {}, schema, schema.definitions ?? {}))
}

/** Mistakes of fields as offsets in the text of a document. Absent fields are marked at the object around. */
export function placeMistakes(
  document: Document,
  mistakes: readonly FieldMistake[],
): readonly EditorMistake[] {
  return mistakes.map(({ path, message }) => {
    const { from, to, depth } = rangeOf(document, path)
    const missing = path.slice(depth).map((step) => labelOf(String(step)))
    return { from, to, message: missing.length === 0 ? message : `${missing.join(' › ')} ${message}` }
  })
}

/** Range of the key and value at a path, or of the nearest place around it that exists. */
function rangeOf(document: Document, path: FieldPath): { from: number; to: number; depth: number } {
  for (let depth = path.length; depth > 0; depth--) {
    const last = path[depth - 1]
    const parent = depth === 1 ? document.contents : document.getIn(path.slice(0, depth - 1), true)
    const pair = isMap(parent)
      ? parent.items.find(
          (item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(last),
        )
      : undefined
    const key = pair && isNode(pair.key) ? pair.key.range : undefined
    const value = document.getIn(path.slice(0, depth), true)
    const range = isNode(value) ? value.range : undefined
    const shown = depth < path.length || (isNode(value) && !isScalar(value)) ? (key ?? range) : (range ?? key)
    if (shown) return { from: shown[0], to: shown[1], depth }
  }
  return { from: 0, to: 0, depth: 0 }
}
