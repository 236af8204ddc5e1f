import { useState } from 'react'
import type { CatalogSource, ListedPrice, PriceName, Rates } from '../../../api/llm/costs.ts'
import { useKindSchema } from '../../../api/resources.ts'
import { useMayChange, useWhoami } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { useSave } from '../../../save/save.tsx'
import { providerKinds } from '../models/provider-kinds.ts'
import {
  type CatalogRecord,
  entryOf,
  isPrice,
  type ModelPlace,
  priceNames,
  withEntry,
  withRates,
} from './catalog-edit.ts'
import { sourceText } from './source.ts'
import { ownRecord, useCatalogRecord } from './use-catalog.ts'

const labels: Record<PriceName, readonly [label: string, fallback: string]> = {
  input: ['Input', 'unknown'],
  output: ['Output', 'unknown'],
  cacheRead: ['Cached input', 'as input'],
  cacheWrite: ['Cache writes', 'as input'],
  reasoning: ['Reasoning', 'as output'],
  inputAudio: ['Audio input', 'as input'],
  outputAudio: ['Audio output', 'as output'],
  inputImage: ['Image input', 'as input'],
  outputImage: ['Image output', 'as output'],
}

type PriceDialogProps = {
  /** Undefined: a model to enter. */
  readonly place: ModelPlace | undefined
  /** Effective price of the model. */
  readonly price: ListedPrice | undefined
  readonly catalogs: readonly CatalogSource[]
  onClose(): void
}

/** Edits the custom price of a model. */
export function PriceDialog(props: PriceDialogProps) {
  const found = useCatalogRecord()
  const { data: whoami } = useWhoami()
  if (found.data === undefined || whoami === undefined) {
    return (
      <Dialog open title="Price" onOpenChange={(open) => open || props.onClose()}>
        {found.error ? <ErrorState error={found.error} /> : <SkeletonLines count={5} />}
      </Dialog>
    )
  }
  return <Loaded {...props} record={ownRecord(found.data, whoami)} />
}

function Loaded({
  place,
  price,
  catalogs,
  record,
  onClose,
}: PriceDialogProps & { readonly record: ReturnType<typeof ownRecord> }) {
  const mayChange = useMayChange()
  const { save, busy, dialog } = useSave('modelCatalog')
  const [at, setAt] = useState<ModelPlace>(place ?? { provider: 'openai', model: '' })
  const stored = entryOf(record?.value.custom, at)
  const [texts, setTexts] = useState<Rates>(stored?.rates ?? {})
  const [message, setMessage] = useState<string>()
  const [checked, setChecked] = useState(false)
  const wrong = priceNames.filter((name) => texts[name] !== undefined && !isPrice(texts[name] ?? ''))
  const isNew = place === undefined

  const store = async (rates: Rates) => {
    setMessage(undefined)
    const value: CatalogRecord = record?.value ?? {}
    const custom = withEntry(value.custom, at, withRates(stored, rates))
    const outcome = await save({ record, value: { ...value, custom } })
    if (outcome.kind === 'saved') onClose()
    if (outcome.kind === 'refused') setMessage(outcome.message)
  }
  const submit = () => {
    setChecked(true)
    if (wrong.length === 0 && at.model.trim() !== '') void store(texts)
  }
  const overriding = overridingCatalog(price, catalogs)

  return (
    <>
      <Dialog
        open
        title={isNew ? 'New price' : at.model}
        about="Custom prices in US dollars per million tokens. An empty price is that of the other catalogs; 0 is free."
        onOpenChange={(open) => open || onClose()}
        footer={
          mayChange && (
            <>
              {stored !== undefined && (
                <Button tone="danger" disabled={busy} onClick={() => void store({})}>
                  Remove custom price
                </Button>
              )}
              <Button tone="primary" busy={busy} onClick={submit}>
                Review and save
              </Button>
            </>
          )
        }
      >
        <div className="space-y-4">
          {message && <Notice tone="bad" title={message} />}
          {overriding && (
            <Notice tone="warn" title="A later catalog has prices of this model">
              {sourceText(overriding)} overrides custom prices. Remove the price there first.
            </Notice>
          )}
          {isNew && (
            <PlaceFields
              at={at}
              error={checked && at.model.trim() === '' ? 'Enter the model name of the provider.' : undefined}
              onChange={setAt}
            />
          )}
          <fieldset disabled={!mayChange} className="grid grid-cols-1 gap-4 sm:grid-cols-2">
            {priceNames.map((name) => (
              <PriceField
                key={name}
                name={name}
                text={texts[name] ?? ''}
                effective={price?.rates?.[name]}
                wrong={checked && wrong.includes(name)}
                onChange={(text) => {
                  const { [name]: _, ...rest } = texts
                  setTexts(text === '' ? rest : { ...rest, [name]: text })
                }}
              />
            ))}
          </fieldset>
          {price?.tiers !== undefined && price.tiers.length > 0 && (
            <p className="text-xs text-ink-faint">
              The model has other prices for long prompts:{' '}
              {price.tiers
                .map(({ contextOver }) => `above ${contextOver.toLocaleString()} tokens`)
                .join(', ')}
              .
            </p>
          )}
        </div>
      </Dialog>
      {dialog}
    </>
  )
}

function PriceField({
  name,
  text,
  effective,
  wrong,
  onChange,
}: {
  name: PriceName
  text: string
  effective: string | undefined
  wrong: boolean
  onChange(text: string): void
}) {
  const [label, fallback] = labels[name]
  return (
    <Field label={label} error={wrong ? 'Enter digits with at most six decimals, such as 2.50.' : undefined}>
      {(control) => (
        <Input
          {...control}
          inputMode="decimal"
          className="tabular"
          value={text}
          placeholder={effective ?? fallback}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}

function PlaceFields({
  at,
  error,
  onChange,
}: {
  at: ModelPlace
  error: string | undefined
  onChange(at: ModelPlace): void
}) {
  const schema = useKindSchema('llm.provider')
  const kinds = schema.data ? providerKinds(schema.data) : []
  return (
    <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
      <Field label="Provider">
        {(control) => (
          <Select
            {...control}
            options={(kinds.includes(at.provider) ? kinds : [at.provider, ...kinds]).map((kind) => ({
              value: kind,
              label: kind,
            }))}
            value={at.provider}
            onChange={(provider) => onChange({ ...at, provider })}
          />
        )}
      </Field>
      <Field label="Model" required error={error}>
        {(control) => (
          <Input
            {...control}
            spellCheck={false}
            value={at.model}
            onChange={(event) => onChange({ ...at, model: event.target.value })}
          />
        )}
      </Field>
    </div>
  )
}

/** The catalog after the custom one that a price comes from. */
function overridingCatalog(
  price: ListedPrice | undefined,
  catalogs: readonly CatalogSource[],
): CatalogSource | undefined {
  if (price === undefined) return undefined
  const hasDatabase = catalogs.some(({ source }) => source === 'base')
  const custom = catalogs.findIndex(({ source }) => source === 'custom')
  const last = Math.max(...Object.values(price.sources))
  if (custom === -1 && !hasDatabase) return undefined
  return last > custom ? catalogs[last] : undefined
}
