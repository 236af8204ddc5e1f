import { Eye, EyeOff } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useEnteredKey } from '../../../api/entered-key.ts'
import { IconButton } from '../../../components/action/icon-button.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input, TextArea } from '../../../components/form/input.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Switch } from '../../../components/form/switch.tsx'
import { useChat } from '../chat-context.ts'
import type { Settings } from '../model/conversation.ts'
import { ToolsEditor } from './tools-editor.tsx'

/** Connection, system prompt, parameters and tools of the playground. */
export function SettingsForm() {
  return (
    <div className="divide-y divide-line [&>*]:py-4 [&>*:first-child]:pt-1 [&>*:last-child]:pb-0">
      <Connection />
      <SystemPrompt />
      <Parameters />
      <ToolsEditor />
    </div>
  )
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="space-y-3">
      <h2 className="text-sm">{title}</h2>
      {children}
    </section>
  )
}

function Connection() {
  const { store, state, listeners, listener, models } = useChat()
  const [key, enterKey] = useEnteredKey()
  const [shown, setShown] = useState(false)
  return (
    <Section title="Connection">
      {listeners.length > 1 && (
        <Field label="Gateway">
          {(control) => (
            <Select
              {...control}
              value={listener?.gateway ?? ''}
              onChange={(gateway) => store.setConnection({ gateway })}
              options={listeners.map(({ gateway, url }) => ({
                value: gateway,
                label: `${gateway} (${url})`,
              }))}
            />
          )}
        </Field>
      )}
      <Field
        label="Virtual key"
        help="Stays in the memory of this page. A reload forgets it."
        error={models.kind === 'refused' && problemOf(models.status, models.message, key)}
      >
        {(control) => (
          <div className="flex gap-1">
            <Input
              {...control}
              type={shown ? 'text' : 'password'}
              value={key}
              placeholder="tg-…"
              autoComplete="off"
              spellCheck={false}
              className="font-mono"
              onChange={(event) => enterKey(event.target.value)}
            />
            <IconButton
              icon={shown ? EyeOff : Eye}
              label={shown ? 'Hide key' : 'Show key'}
              onClick={() => setShown(!shown)}
            />
          </div>
        )}
      </Field>
      <Toggle
        label="Separate prompts"
        checked={state.separate}
        onChange={(separate) => store.setConnection({ separate })}
      />
    </Section>
  )
}

function problemOf(status: number, message: string, key: string): string {
  if (status !== 401) return message
  return key === '' ? 'The gateway requires a virtual key.' : 'The gateway does not accept this key.'
}

function SystemPrompt() {
  const { store, state } = useChat()
  return (
    <Field label="System prompt">
      {(control) => (
        <TextArea
          {...control}
          rows={3}
          value={state.settings.system}
          placeholder="You are a helpful assistant."
          onChange={(event) => store.setSettings({ system: event.target.value })}
        />
      )}
    </Field>
  )
}

type NumberField = {
  readonly field: 'temperature' | 'topP' | 'maxTokens' | 'seed'
  readonly label: string
  readonly min: number
  readonly max?: number
  readonly step: number
}

const numberFields: readonly NumberField[] = [
  { field: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.1 },
  { field: 'topP', label: 'Top p', min: 0, max: 1, step: 0.05 },
  { field: 'maxTokens', label: 'Max tokens', min: 1, step: 1 },
  { field: 'seed', label: 'Seed', min: 0, step: 1 },
]

const efforts = ['minimal', 'low', 'medium', 'high']

function Parameters() {
  const { store, state } = useChat()
  const { settings } = state
  const set = (change: Partial<Settings>) => store.setSettings(change)
  return (
    <Section title="Parameters">
      <Toggle label="Stream" checked={settings.stream} onChange={(stream) => set({ stream })} />
      <div className="grid grid-cols-2 gap-3">
        {numberFields.map(({ field, label, min, max, step }) => (
          <Field key={field} label={label}>
            {(control) => (
              <Input
                {...control}
                type="number"
                {...{ min, max, step }}
                placeholder="default"
                value={settings[field]}
                onChange={(event) => set({ [field]: event.target.value })}
              />
            )}
          </Field>
        ))}
        <Field label="Reasoning">
          {(control) => (
            <Select
              {...control}
              value={settings.effort}
              onChange={(effort) => set({ effort })}
              options={[
                { value: '', label: 'default' },
                ...efforts.map((value) => ({ value, label: value })),
              ]}
            />
          )}
        </Field>
        <Field label="Format">
          {(control) => (
            <Select
              {...control}
              value={settings.format}
              onChange={(format) => set({ format: format === 'json_object' ? format : 'text' })}
              options={[
                { value: 'text', label: 'text' },
                { value: 'json_object', label: 'JSON' },
              ]}
            />
          )}
        </Field>
      </div>
      <Field label="Stop sequences" help="One in each line.">
        {(control) => (
          <TextArea
            {...control}
            rows={1}
            className="font-mono"
            value={settings.stop}
            onChange={(event) => set({ stop: event.target.value })}
          />
        )}
      </Field>
    </Section>
  )
}

function Toggle({
  label,
  checked,
  onChange,
}: {
  label: string
  checked: boolean
  onChange(checked: boolean): void
}) {
  return (
    <div className="flex items-center justify-between gap-3 text-sm">
      <span aria-hidden>{label}</span>
      <Switch aria-label={label} checked={checked} onChange={onChange} />
    </div>
  )
}
