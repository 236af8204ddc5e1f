import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Card } from '../../../components/layout/card.tsx'
import type { SchemaFormState } from '../../../schema-form/form-state.ts'
import type { JsonSchema } from '../../../schema-form/model/schema.ts'
import { valueAt } from '../../../schema-form/model/value.ts'
import { providerKinds } from '../models/provider-kinds.ts'

/** Name and kind of a shared provider. */
export function ProviderBasics({
  form: { value, set, mistakes },
  schema,
  readOnly,
}: {
  form: SchemaFormState
  schema: JsonSchema
  readOnly: boolean
}) {
  const name = String(valueAt(value, ['name']) ?? '')
  const kind = String(valueAt(value, ['provider']) ?? '')
  const kinds = providerKinds(schema)
  const mistakeOf = (field: string) =>
    mistakes.find(({ path }) => path[0] === field && path.length === 1)?.message
  return (
    <Card title="Provider">
      <fieldset disabled={readOnly} className="grid grid-cols-1 gap-5 pt-1 lg:grid-cols-2">
        <Field label="Name" required help="Models refer to this name." error={mistakeOf('name')}>
          {(control) => (
            <Input
              {...control}
              dir="auto"
              spellCheck={false}
              value={name}
              onChange={(event) => set(['name'], event.target.value)}
            />
          )}
        </Field>
        <Field
          label="Kind"
          required
          help={
            kind === 'custom'
              ? 'A server with an OpenAI-compatible API. It needs a base URL below.'
              : 'Determines the API and the default address.'
          }
          error={mistakeOf('provider')}
        >
          {(control) => (
            <Select
              {...control}
              options={(kinds.includes(kind) ? kinds : [kind, ...kinds]).map((one) => ({
                value: one,
                label: one,
              }))}
              value={kind}
              onChange={(next) => set(['provider'], next)}
            />
          )}
        </Field>
      </fieldset>
    </Card>
  )
}
