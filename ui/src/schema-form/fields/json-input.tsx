import { useState } from 'react'
import { TextArea } from '../../components/form/input.tsx'
import { useFormContext } from '../form-context.ts'
import { useControl } from '../frame/field-row.tsx'
import type { NodeOf } from '../model/node.ts'
import { sameJson } from '../model/value.ts'
import type { InputProps } from './text-input.tsx'

/** Any JSON value as text. Incomplete text stays in the input, and the form is not complete until it is JSON. */
export function JsonInput(
  props: Pick<InputProps<NodeOf<'json'>>, 'value' | 'path' | 'label' | 'optional'> & {
    readonly node: { readonly description: string | undefined; readonly example: unknown }
    readonly bare?: boolean
  },
) {
  const { node, value, path, label, optional, bare } = props
  const { readOnly, set, setDraftMistake } = useFormContext()
  const control = useControl(path, bare ? undefined : node.description)
  const [draft, setDraft] = useState<{ text: string; mistake: string | undefined }>()
  const parsed = draft && draft.mistake === undefined ? parseJson(draft.text) : undefined
  const isCurrent = draft && (draft.mistake !== undefined || sameJson(parsed?.value, value))
  const text = isCurrent ? draft.text : value === undefined ? '' : JSON.stringify(value, null, 2)
  const change = (next: string) => {
    const { value: result, mistake } = parseJson(next)
    setDraft({ text: next, mistake })
    setDraftMistake(path, mistake)
    if (mistake === undefined) set(path, result === undefined && !optional ? {} : result)
  }
  return (
    <>
      <TextArea
        {...control}
        {...(bare && { 'aria-label': label })}
        rows={Math.min(18, Math.max(3, text.split('\n').length))}
        spellCheck={false}
        className="font-mono text-xs"
        readOnly={readOnly}
        value={text}
        placeholder={node.example === undefined ? 'JSON' : JSON.stringify(node.example)}
        onChange={(event) => change(event.target.value)}
      />
      {draft?.mistake && (
        <p role="status" className="mt-1 text-xs text-bad">
          {draft.mistake}
        </p>
      )}
    </>
  )
}

function parseJson(text: string): { value: unknown; mistake: string | undefined } {
  if (text.trim() === '') return { value: undefined, mistake: undefined }
  try {
    return { value: JSON.parse(text), mistake: undefined }
  } catch {
    return { value: undefined, mistake: 'must be JSON, for example {"name": "value"}' }
  }
}
