import { memo, type ReactNode, useMemo } from 'react'
import { fieldId, useFormContext } from '../form-context.ts'
import { FieldRow } from '../frame/field-row.tsx'
import { Section } from '../frame/section.tsx'
import { readNode } from '../model/node.ts'
import type { JsonSchema } from '../model/schema.ts'
import { type FieldPath, isObject } from '../model/value.ts'
import { AlternativesInput } from './alternatives-input.tsx'
import { BooleanInput } from './boolean-input.tsx'
import { ChoiceInput } from './choice-input.tsx'
import { JsonInput } from './json-input.tsx'
import { ListInput } from './list-input.tsx'
import { MapInput } from './map-input.tsx'
import { NumberInput } from './number-input.tsx'
import { ObjectFields } from './object-fields.tsx'
import { SecretInput } from './secret-input.tsx'
import { TextInput } from './text-input.tsx'

export type NodeInputProps = {
  readonly schema: JsonSchema
  readonly value: unknown
  readonly path: FieldPath
  readonly label: string
  /** Whether the value may be absent. Items of lists and entries of maps may not. */
  readonly optional: boolean
  readonly required?: boolean
  /** Without label and description: the place names it. */
  readonly bare?: boolean
}

/** The input for a schema, with its label and documentation. */
export const NodeInput = memo(function NodeInput(props: NodeInputProps): ReactNode {
  const { schema, value, path, label, optional, required = false, bare = false } = props
  const form = useFormContext()
  const node = useMemo(() => readNode(schema, form.definitions), [schema, form.definitions])
  const common = { value, path, optional, label, required, bare }
  if (node.secret) return row(<SecretInput {...common} schema={schema} node={node} />)
  switch (node.kind) {
    case 'text':
      return row(<TextInput {...common} node={node} />)
    case 'number':
      return row(<NumberInput {...common} node={node} />)
    case 'boolean':
      return row(<BooleanInput {...common} node={node} />)
    case 'choice':
      return row(<ChoiceInput {...common} node={node} />)
    case 'json':
      return row(<JsonInput {...common} node={node} />)
    case 'map':
      return <MapInput {...common} node={node} />
    case 'list':
      return <ListInput {...common} node={node} />
    case 'alternatives':
      return <AlternativesInput {...common} node={node} />
    case 'object':
      if (value !== undefined && !isObject(value)) return row(<JsonInput {...common} node={node} />)
      if (bare) return <ObjectFields node={node} value={value} path={path} />
      return (
        <Section {...common} description={node.description} schema={schema} count={undefined}>
          <ObjectFields node={node} value={value} path={path} />
        </Section>
      )
  }

  function row(control: ReactNode): ReactNode {
    if (bare) return <div id={`${fieldId(form, path)}-bare`}>{control}</div>
    return (
      <FieldRow label={label} path={path} required={required} description={node.description}>
        {control}
      </FieldRow>
    )
  }
}, sameProps)

function sameProps(before: NodeInputProps, after: NodeInputProps): boolean {
  return (
    before.schema === after.schema &&
    Object.is(before.value, after.value) &&
    before.label === after.label &&
    before.optional === after.optional &&
    before.required === after.required &&
    before.bare === after.bare &&
    before.path.length === after.path.length &&
    before.path.every((step, index) => step === after.path[index])
  )
}
