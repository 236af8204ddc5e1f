import { ArrowRight } from 'lucide-react'
import { type FormEvent, useId, useState } from 'react'
import { useRecords } from '../../../api/resources.ts'
import { useMayChange } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { Select } from '../../../components/form/select.tsx'
import { useSave } from '../../../save/save.tsx'
import { providerChoices } from './provider-choices.ts'

type Provider = { readonly name: string; readonly provider: string }

/** Creates a record of `llm.model` that refers to a provider. */
export function ModelStep({ onDone }: { onDone(): void }) {
  const { data } = useRecords<Provider>('llm.provider', { limit: 100, sort: '-updatedAt' })
  if (data === undefined) return <SkeletonLines />
  const providers = data.resources.map(({ value }) => value)
  if (providers.length === 0) return <p className="text-sm text-ink-soft">Connect a provider first.</p>
  return <ModelForm providers={providers} onDone={onDone} />
}

function ModelForm({ providers, onDone }: { providers: readonly Provider[]; onDone(): void }) {
  const { save, busy, dialog } = useSave('llm.model')
  const mayChange = useMayChange()
  const [reference, setReference] = useState(providers[0]?.name ?? '')
  const [name, setName] = useState('')
  const [model, setModel] = useState('')
  const [problem, setProblem] = useState<string>()
  const listId = useId()
  const kind = providers.find((provider) => provider.name === reference)?.provider
  const proposals = providerChoices.find(({ id }) => id === kind)?.models ?? []
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const value = {
      name: name.trim(),
      provider: { reference },
      ...(model.trim() === '' ? {} : { params: { model: model.trim() } }),
    }
    const outcome = await save({ record: undefined, value })
    setProblem(outcome.kind === 'refused' ? outcome.message : undefined)
    if (outcome.kind === 'saved') onDone()
  }
  return (
    <form onSubmit={submit} className="space-y-4">
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
        <Field label="Provider">
          {(control) => (
            <Select
              {...control}
              value={reference}
              onChange={setReference}
              options={providers.map((provider) => ({ value: provider.name, label: provider.name }))}
            />
          )}
        </Field>
        <Field label="Model name" required help="Exact, or with * first or last: gpt-*">
          {(control) => (
            <>
              <Input
                {...control}
                list={listId}
                value={name}
                spellCheck={false}
                className="font-mono"
                onChange={(event) => setName(event.target.value)}
              />
              <datalist id={listId}>
                {proposals.map((proposal) => (
                  <option key={proposal} value={proposal} />
                ))}
              </datalist>
            </>
          )}
        </Field>
      </div>
      {proposals.length > 0 && (
        <div className="flex flex-wrap items-center gap-2 text-xs text-ink-soft">
          Proposals
          {proposals.map((proposal) => (
            <Button key={proposal} size="small" onClick={() => setName(proposal)}>
              <code>{proposal}</code>
            </Button>
          ))}
        </div>
      )}
      <details>
        <summary className="cursor-pointer text-sm text-ink-soft">Another name at the provider</summary>
        <div className="mt-3 max-w-sm">
          <Field label="Name at the provider" help="Empty: the name that the client requests.">
            {(control) => (
              <Input
                {...control}
                value={model}
                spellCheck={false}
                className="font-mono"
                onChange={(event) => setModel(event.target.value)}
              />
            )}
          </Field>
        </div>
      </details>
      {problem && <Notice tone="bad" title={problem} />}
      <Button
        type="submit"
        tone="primary"
        icon={ArrowRight}
        busy={busy}
        disabled={!mayChange || name.trim() === ''}
      >
        Add model
      </Button>
      {dialog}
    </form>
  )
}
