import { ArrowRight } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useMayChange } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { classNames } from '../../../components/class-names.ts'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { useSave } from '../../../save/save.tsx'
import { type ProviderChoice, providerChoices } from './provider-choices.ts'

/** Creates a record of `llm.provider`. */
export function ProviderStep({ onDone }: { onDone(): void }) {
  const [choice, setChoice] = useState<ProviderChoice>()
  return (
    <div className="space-y-5">
      <ProviderTiles chosen={choice} onChoose={setChoice} />
      {choice && <ProviderForm key={choice.id} choice={choice} onDone={onDone} />}
    </div>
  )
}

function ProviderTiles({
  chosen,
  onChoose,
}: {
  chosen: ProviderChoice | undefined
  onChoose(choice: ProviderChoice): void
}) {
  return (
    <fieldset>
      <legend className="mb-2 text-sm font-medium">Provider</legend>
      <div className="grid grid-cols-1 gap-2 sm:grid-cols-3">
        {providerChoices.map((choice) => (
          <label
            key={choice.id}
            className={classNames(
              'cursor-pointer rounded-lg border px-3 py-2.5 hover:bg-hover has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent',
              chosen === choice ? 'border-accent bg-accent-soft' : 'border-line',
            )}
          >
            <input
              type="radio"
              name="provider"
              className="sr-only"
              checked={chosen === choice}
              onChange={() => onChoose(choice)}
            />
            <span className="block text-sm font-medium">{choice.label}</span>
            <span className="block text-xs text-ink-soft">{choice.about}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

function ProviderForm({ choice, onDone }: { choice: ProviderChoice; onDone(): void }) {
  const { save, busy, dialog } = useSave('llm.provider')
  const mayChange = useMayChange()
  const [name, setName] = useState(choice.id)
  const [apiKey, setApiKey] = useState('')
  const [baseUrl, setBaseUrl] = useState('')
  const [problem, setProblem] = useState<string>()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const params = {
      ...(apiKey.trim() === '' ? {} : { apiKey: apiKey.trim() }),
      ...(baseUrl.trim() === '' ? {} : { baseUrl: baseUrl.trim() }),
    }
    const value = {
      name: name.trim(),
      provider: choice.id,
      ...(Object.keys(params).length > 0 && { params }),
    }
    const outcome = await save({ record: undefined, value })
    setProblem(outcome.kind === 'refused' ? outcome.message : undefined)
    if (outcome.kind === 'saved') onDone()
  }
  return (
    <form onSubmit={submit} className="space-y-4">
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
        {choice.credential !== 'none' && (
          <Field
            label="API key of the provider"
            required={choice.credential === 'required'}
            help="Stored in the gateway, and never displayed again."
          >
            {(control) => (
              <Input
                {...control}
                type="password"
                value={apiKey}
                autoComplete="off"
                spellCheck={false}
                className="font-mono"
                onChange={(event) => setApiKey(event.target.value)}
              />
            )}
          </Field>
        )}
        {choice.address && (
          <Field
            label="Address"
            required={choice.address.required}
            help={choice.address.required ? undefined : `Default: ${choice.address.example}`}
          >
            {(control) => (
              <Input
                {...control}
                type="url"
                value={baseUrl}
                placeholder={choice.address?.example}
                onChange={(event) => setBaseUrl(event.target.value)}
              />
            )}
          </Field>
        )}
        <Field label="Name" required help="Models refer to this name.">
          {(control) => <Input {...control} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
      </div>
      {problem && <Notice tone="bad" title={problem} />}
      <Button type="submit" tone="primary" icon={ArrowRight} busy={busy} disabled={!mayChange}>
        Connect {choice.label}
      </Button>
      {dialog}
    </form>
  )
}
