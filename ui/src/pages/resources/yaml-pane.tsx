import { useEffect, useMemo, useRef, useState } from 'react'
import { yamlOf } from '../../save/diff/diff-view.tsx'
import type { SchemaFormState } from '../../schema-form/form-state.ts'
import type { JsonSchema } from '../../schema-form/model/schema.ts'
import { sameJson } from '../../schema-form/model/value.ts'
import { SchemaYaml } from '../../schema-form/yaml/schema-yaml.tsx'
import { parseYaml, placeMistakes } from '../../schema-form/yaml/yaml-mistakes.ts'

type YamlPaneProps = {
  readonly form: SchemaFormState
  readonly schema: JsonSchema
  readonly readOnly: boolean
  onMistake(message: string | undefined): void
}

const parseDelayMs = 150

/** The record as YAML. Both views edit the same value. */
export default function YamlPane({ form, schema, readOnly, onMistake }: YamlPaneProps) {
  const [text, setText] = useState(() => yamlOf(form.value))
  const shown = useRef(form.value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const pending = useRef<string>(undefined)
  const { set } = form

  const apply = (next: string) => {
    pending.current = undefined
    const parsed = parseYaml(next)
    onMistake(parsed.kind === 'invalid' ? parsed.message : undefined)
    if (parsed.kind === 'invalid') return
    shown.current = parsed.value ?? {}
    set([], shown.current)
  }
  const latestApply = useRef(apply)
  latestApply.current = apply
  const change = (next: string) => {
    setText(next)
    pending.current = next
    clearTimeout(timer.current)
    timer.current = setTimeout(() => latestApply.current(next), parseDelayMs)
  }
  // The last keys before the other view is opened count too.
  useEffect(
    () => () => {
      clearTimeout(timer.current)
      if (pending.current !== undefined) latestApply.current(pending.current)
    },
    [],
  )
  // A value from elsewhere, such as a discarded change, replaces the text.
  useEffect(() => {
    if (sameJson(form.value, shown.current)) return
    shown.current = form.value
    setText(yamlOf(form.value))
  }, [form.value])

  const mistakes = useMemo(() => {
    const parsed = form.mistakes.length === 0 ? undefined : parseYaml(text)
    return parsed?.kind === 'value' ? placeMistakes(parsed.document, form.mistakes) : noMistakes
  }, [form.mistakes, text])
  return (
    <SchemaYaml
      label="YAML of the record"
      schema={schema}
      value={text}
      readOnly={readOnly}
      mistakes={mistakes}
      {...(readOnly ? {} : { onChange: change })}
      onBlur={() => {
        clearTimeout(timer.current)
        if (pending.current !== undefined) apply(pending.current)
      }}
    />
  )
}

const noMistakes: readonly never[] = []
