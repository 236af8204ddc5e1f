import { useCallback, useMemo } from 'react'
import { CodeEditor, type EditorMistake } from '../code-editor.tsx'
import { suggestCel, variablesOf } from './cel-suggestions.ts'
import { type CelVocabulary, checkCel, useCelVocabulary } from './vocabulary.ts'

type CelInputProps = {
  readonly label: string
  readonly id?: string | undefined
  readonly describedBy?: string | undefined
  readonly invalid?: boolean | undefined
  readonly value: string
  /** Variables in scope; those of `scope`, or all, if undefined. */
  readonly roots?: readonly string[] | undefined
  readonly scope?: string | undefined
  readonly placeholder?: string | undefined
  readonly readOnly?: boolean
  onChange(value: string): void
}

/** A CEL expression, checked by the gateway while it is typed, with completion of the variables in scope. */
export function CelInput(props: CelInputProps) {
  const { roots, scope } = props
  const { data } = useCelVocabulary()
  const variables = useMemo(() => (data ? variablesOf(data, roots, scope) : []), [data, roots, scope])
  const check = useCallback(
    async (text: string): Promise<readonly EditorMistake[]> => {
      if (text.trim() === '') return []
      const result = await checkCel(text, { roots, scope })
      if (result.ok) return []
      const from = Math.min(result.offset ?? 0, Math.max(0, text.length - 1))
      return [{ from, to: wordEnd(text, from), message: result.message }]
    },
    [roots, scope],
  )
  const complete = useCallback(
    (text: string, offset: number) => suggestCel(text, offset, variables, data?.functions ?? noFunctions),
    [variables, data],
  )
  return <CodeEditor {...props} language="cel" check={check} complete={complete} />
}

const noFunctions: CelVocabulary['functions'] = []

function wordEnd(text: string, from: number): number {
  const word = /^[\w.]+/.exec(text.slice(from))
  return from + (word?.[0].length ?? 1)
}
