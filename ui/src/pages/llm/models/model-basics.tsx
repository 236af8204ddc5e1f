import { Plus } from 'lucide-react'
import { ButtonLink } from '../../../components/action/button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { Segmented } from '../../../components/form/segmented.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Card } from '../../../components/layout/card.tsx'
import type { SchemaFormState } from '../../../schema-form/form-state.ts'
import type { JsonSchema } from '../../../schema-form/model/schema.ts'
import { isObject, valueAt } from '../../../schema-form/model/value.ts'
import type { ProviderValue } from './model.ts'
import { useSharedProviders } from './model-facts.ts'
import { providerKinds } from './provider-kinds.ts'

type BasicsProps = {
  readonly form: SchemaFormState
  readonly schema: JsonSchema
  readonly readOnly: boolean
}

/** Name, provider, served model and visibility of a model. */
export function ModelBasics({ form, schema, readOnly }: BasicsProps) {
  const shared = useSharedProviders()
  const { value, set, mistakes } = form
  const text = (path: readonly string[]) => {
    const found = valueAt(value, path)
    return typeof found === 'string' ? found : ''
  }
  const mistakeOf = (field: string) =>
    mistakes.find(({ path }) => path[0] === field && path.length === 1)?.message
  const provider = valueAt(value, ['provider'])
  const reference = isObject(provider) ? String(provider['reference'] ?? '') : undefined
  const name = text(['name'])
  return (
    <Card title="Model">
      <fieldset disabled={readOnly} className="grid grid-cols-1 gap-5 pt-1 lg:grid-cols-2">
        <Field
          label="Name"
          required
          help="Exact name in requests, or prefix*, *suffix or *."
          error={mistakeOf('name')}
        >
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
        <ProviderField
          provider={typeof provider === 'string' ? provider : ''}
          reference={reference}
          shared={shared}
          kinds={providerKinds(schema)}
          error={mistakeOf('provider')}
          onChange={(next) => {
            set(['provider'], next)
            // With a shared provider, a model has no address and credential of its own.
            const served = valueAt(value, ['params', 'model'])
            if (typeof next !== 'string')
              set(['params'], served === undefined ? undefined : { model: served })
          }}
        />
        <div>
          <div className="mb-1 text-sm font-medium">Visibility</div>
          <Segmented
            label="Visibility"
            value={text(['visibility']) === 'internal' ? 'internal' : 'public'}
            options={[
              { value: 'public', label: 'Public' },
              { value: 'internal', label: 'Internal' },
            ]}
            onChange={(next) => set(['visibility'], next === 'public' ? undefined : next)}
          />
          <p className="mt-1 text-xs text-ink-faint">
            Internal models are available through virtual models alone, and are not listed.
          </p>
        </div>
        {reference !== undefined && reference !== '' && shared.size > 0 && !shared.has(reference) && (
          <div className="lg:col-span-2">
            <Notice tone="warn" title={`No shared provider is named ${reference}`} />
          </div>
        )}
      </fieldset>
    </Card>
  )
}

const referencePrefix = 'reference '

function ProviderField({
  provider,
  reference,
  shared,
  kinds,
  error,
  onChange,
}: {
  provider: string
  reference: string | undefined
  shared: ReadonlyMap<string, ProviderValue>
  kinds: readonly string[]
  error: string | undefined
  onChange(provider: string | { readonly reference: string }): void
}) {
  const current = reference === undefined ? provider : `${referencePrefix}${reference}`
  const options = [
    ...[...shared.values()].map((one) => ({
      value: `${referencePrefix}${one.name}`,
      label: `${one.name} (shared ${one.provider})`,
    })),
    ...kinds.map((kind) => ({ value: kind, label: kind })),
  ]
  const known = options.some(({ value }) => value === current)
  return (
    <Field
      label="Provider"
      required
      help={
        reference === undefined
          ? 'The credential is below. A shared provider has it for several models.'
          : 'The shared provider has the address and the credential.'
      }
      error={error}
    >
      {(control) => (
        <div className="flex items-center gap-2">
          <Select
            {...control}
            options={
              known ? options : [{ value: current, label: current.replace(referencePrefix, '') }, ...options]
            }
            value={current}
            onChange={(next) =>
              onChange(
                next.startsWith(referencePrefix) ? { reference: next.slice(referencePrefix.length) } : next,
              )
            }
          />
          <ButtonLink icon={Plus} href="/llm/providers/new">
            Shared
          </ButtonLink>
        </div>
      )}
    </Field>
  )
}
