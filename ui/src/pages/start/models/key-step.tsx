import { ArrowRight, KeyRound, ShieldCheck } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { enterKey } from '../../../api/entered-key.ts'
import { useMayChange, useWhoami } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { CodeBlock } from '../../../components/data/code-block.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { useSave } from '../../../save/save.tsx'

/** Requires keys of clients, then creates the first. The key is displayed once. */
export function KeyStep({ hasPolicy, onDone }: { hasPolicy: boolean; onDone(): void }) {
  const [created, setCreated] = useState<string>()
  if (created !== undefined) return <CreatedKey value={created} onDone={onDone} />
  return hasPolicy ? (
    <KeyForm
      onCreated={(key) => {
        enterKey(key)
        setCreated(key)
      }}
    />
  ) : (
    <PolicyForm onDone={onDone} />
  )
}

const section = `llm:
  policies:
    apiKey:
      mode: strict
      keys: []
`

function PolicyForm({ onDone }: { onDone(): void }) {
  const { save, busy, dialog } = useSave('llm.policy')
  const { data: whoami } = useWhoami()
  const mayChange = useMayChange()
  const [problem, setProblem] = useState<{ message: string; status: number }>()
  const submit = async () => {
    const outcome = await save({ record: undefined, name: 'apiKey', value: { mode: 'strict' } })
    setProblem(outcome.kind === 'refused' ? outcome : undefined)
  }
  const needsFile = whoami?.storage.mode === 'hybrid' && problem?.status === 409
  return (
    <div className="space-y-4">
      <Notice tone="warn" title="Every client that reaches the port can use the models">
        Require a virtual key first: the policy <code>apiKey</code> refuses other requests with 401.
      </Notice>
      {needsFile ? (
        <>
          <p className="text-sm text-ink-soft">
            With a database, the configuration file decides whether keys are required. Add this to the file;
            the gateway applies it at once, and this step continues.
          </p>
          <CodeBlock label="section of the configuration file" text={section} />
        </>
      ) : (
        problem && <Notice tone="bad" title={problem.message} />
      )}
      <div className="flex flex-wrap gap-2">
        <Button tone="primary" icon={ShieldCheck} busy={busy} disabled={!mayChange} onClick={submit}>
          Require virtual keys
        </Button>
        <Button tone="quiet" onClick={onDone}>
          Continue without keys
        </Button>
      </div>
      {dialog}
    </div>
  )
}

function KeyForm({ onCreated }: { onCreated(key: string): void }) {
  const { save, busy, dialog } = useSave('llm.apiKey')
  const mayChange = useMayChange()
  const [name, setName] = useState('first key')
  const [problem, setProblem] = useState<string>()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const outcome = await save({ record: undefined, value: { metadata: { name: name.trim() } } })
    setProblem(outcome.kind === 'refused' ? outcome.message : undefined)
    if (outcome.kind === 'saved' && outcome.record.key !== undefined) onCreated(outcome.record.key)
  }
  return (
    <form onSubmit={submit} className="space-y-4">
      <div className="max-w-sm">
        <Field
          label="Name"
          required
          help="Of a person, a team or an application. It appears in usage and requests."
        >
          {(control) => <Input {...control} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
      </div>
      {problem && <Notice tone="bad" title={problem} />}
      <Button
        type="submit"
        tone="primary"
        icon={KeyRound}
        busy={busy}
        disabled={!mayChange || name.trim() === ''}
      >
        Create key
      </Button>
      {dialog}
    </form>
  )
}

function CreatedKey({ value, onDone }: { value: string; onDone(): void }) {
  return (
    <div className="space-y-4">
      <Notice tone="good" title="Copy the key now">
        The gateway stores its hash only, and cannot display it again.
      </Notice>
      <CodeBlock label="virtual key" text={value} />
      <Button tone="primary" icon={ArrowRight} onClick={onDone}>
        Make the first call
      </Button>
    </div>
  )
}
