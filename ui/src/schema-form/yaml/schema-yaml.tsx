import { useCallback } from 'react'
import { CodeEditor, type EditorMistake } from '../../editors/code-editor.tsx'
import type { JsonSchema } from '../model/schema.ts'
import { yamlMistakes } from './yaml-mistakes.ts'
import { suggestYaml } from './yaml-suggestions.ts'

type SchemaYamlProps = {
  readonly label: string
  readonly schema: JsonSchema
  readonly value: string
  readonly readOnly?: boolean
  /** Mistakes that the gateway reported. */
  readonly mistakes?: readonly EditorMistake[]
  onChange?(value: string): void
  onBlur?(): void
}

/** A YAML editor with completion and mistakes of a JSON Schema. */
export function SchemaYaml({ schema, ...props }: SchemaYamlProps) {
  const check = useCallback((text: string) => yamlMistakes(text, schema), [schema])
  const complete = useCallback((text: string, offset: number) => suggestYaml(text, offset, schema), [schema])
  return <CodeEditor {...props} language="yaml" size="tall" check={check} complete={complete} />
}
