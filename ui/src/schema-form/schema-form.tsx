import { useId, useMemo } from 'react'
import { NodeInput } from './fields/node-input.tsx'
import { ObjectFields } from './fields/object-fields.tsx'
import { type FormContext, FormProvider, keyOf } from './form-context.ts'
import type { SchemaFormState } from './form-state.ts'
import { Mistakes } from './frame/field-row.tsx'
import { readNode } from './model/node.ts'
import type { JsonSchema } from './model/schema.ts'

type SchemaFormProps = {
  readonly schema: JsonSchema
  readonly form: SchemaFormState
  readonly readOnly?: boolean
  /** Fields of the top level that a purpose-made part of the page displays instead. */
  readonly hidden?: readonly string[]
  /** Accessible name of the form. */
  readonly label: string
}

const nothingHidden: readonly string[] = []

/** Inputs for a value of any JSON Schema of the gateway. Values stay plain JSON. */
export function SchemaForm({
  schema,
  form,
  readOnly = false,
  hidden = nothingHidden,
  label,
}: SchemaFormProps) {
  const id = useId()
  const { mistakes, stored, set, setDraftMistake } = form
  const definitions = schema.definitions ?? noDefinitions
  const context = useMemo<FormContext>(() => {
    const keys = mistakes.map(({ path, message }) => ({ key: keyOf(path), message }))
    return {
      definitions,
      readOnly,
      id,
      stored,
      set,
      setDraftMistake,
      mistakesAt: (path) => keys.filter(({ key }) => key === keyOf(path)).map(({ message }) => message),
      mistakesBelow: (path) => keys.filter(({ key }) => isBelow(key, keyOf(path))).length,
    }
  }, [definitions, readOnly, id, stored, set, setDraftMistake, mistakes])
  const node = useMemo(() => readNode(schema, definitions), [schema, definitions])
  return (
    <FormProvider value={context}>
      <fieldset aria-label={label} className="@container min-w-0">
        {node.kind === 'object' ? (
          <>
            <Mistakes path={top} className="mb-3" />
            <ObjectFields node={node} value={form.value} path={top} hidden={hidden} />
          </>
        ) : (
          <NodeInput schema={schema} value={form.value} path={top} label={label} optional={false} bare />
        )}
      </fieldset>
    </FormProvider>
  )
}

const top: readonly string[] = []
const noDefinitions = {}

function isBelow(key: string, prefix: string): boolean {
  return prefix === '' || key === prefix || key.startsWith(`${prefix}/`)
}
