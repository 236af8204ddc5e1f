import { useMemo } from 'react'
import { Button } from '../../../components/action/button.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { useSchemaForm } from '../../../schema-form/form-state.ts'
import { blankValue } from '../../../schema-form/model/blank.ts'
import { labelOf } from '../../../schema-form/model/label.ts'
import type { JsonSchema } from '../../../schema-form/model/schema.ts'
import { isObject } from '../../../schema-form/model/value.ts'
import { SchemaForm } from '../../../schema-form/schema-form.tsx'
import type { GuardKind } from './guard-schema.ts'
import type { Guard } from './guard-value.ts'

/** Settings of one guard, as a form of its schema. They are stored with the page. */
export function GuardDialog({
  index,
  guard,
  kind,
  kinds,
  schema,
  readOnly,
  onStore,
  onClose,
}: {
  index: number | undefined
  guard: Guard
  kind: string
  kinds: readonly GuardKind[]
  schema: JsonSchema
  readOnly: boolean
  onStore(guard: Guard): void
  onClose(): void
}) {
  const found = kinds.find(({ name }) => name === kind)
  const initial = useMemo(
    () =>
      index === undefined && found
        ? { [kind]: blankValue(found.schema, schema.definitions ?? {}) ?? {} }
        : guard,
    [index, found, kind, guard, schema],
  )
  const form = useSchemaForm(initial, guard)
  const apply = () => {
    if (form.check(schema) && isObject(form.value)) onStore(form.value)
  }
  return (
    <Dialog
      open
      place="side"
      width="wide"
      title={index === undefined ? `New guard: ${labelOf(kind)}` : `Guard ${index + 1}`}
      about={found?.about}
      onOpenChange={(open) => open || onClose()}
      footer={
        <>
          <Button onClick={onClose}>{readOnly ? 'Close' : 'Cancel'}</Button>
          {!readOnly && (
            <Button tone="primary" onClick={apply}>
              {index === undefined ? 'Add' : 'Apply'}
            </Button>
          )}
        </>
      }
    >
      <SchemaForm schema={schema} form={form} readOnly={readOnly} label="Settings of the guard" />
    </Dialog>
  )
}
