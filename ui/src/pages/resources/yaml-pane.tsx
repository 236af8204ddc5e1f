import { useState } from 'react'
import { parseDocument } from 'yaml'
import { TextArea } from '../../components/form/input.tsx'
import { yamlOf } from '../../save/diff-view.tsx'
import type { SchemaFormState } from '../../schema-form/form-state.ts'
import type { JsonSchema } from '../../schema-form/model/schema.ts'

type YamlPaneProps = {
  readonly form: SchemaFormState
  readonly schema: JsonSchema
  readonly readOnly: boolean
  onMistake(message: string | undefined): void
}

/** The record as YAML. Both views edit the same value. */
export default function YamlPane({ form, readOnly, onMistake }: YamlPaneProps) {
  const [text, setText] = useState(() => yamlOf(form.value))
  const [mistake, setMistake] = useState<string>()
  const change = (next: string) => {
    setText(next)
    const document = parseDocument(next, { uniqueKeys: true })
    const [error] = document.errors
    const found = error && `The YAML is not valid: ${error.message.split('\n')[0]}`
    setMistake(found)
    onMistake(found)
    if (found === undefined) form.set([], document.toJS({ maxAliasCount: 100 }) ?? {})
  }
  return (
    <>
      <TextArea
        aria-label="YAML of the record"
        aria-invalid={mistake !== undefined || undefined}
        rows={24}
        spellCheck={false}
        className="font-mono text-xs"
        readOnly={readOnly}
        value={text}
        onChange={(event) => change(event.target.value)}
      />
      {mistake && (
        <p role="alert" className="mt-1 text-xs text-bad">
          {mistake}
        </p>
      )}
    </>
  )
}
