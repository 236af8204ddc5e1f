import type { ReactNode } from 'react'
import { useRecords } from '../../../../api/resources.ts'
import { Field } from '../../../../components/form/field.tsx'
import { Input } from '../../../../components/form/input.tsx'
import { Switch } from '../../../../components/form/switch.tsx'
import { Card } from '../../../../components/layout/card.tsx'
import { AccessInput } from './access-input.tsx'
import { BudgetsInput } from './budgets-input.tsx'
import type { DraftMistakes, KeyDraft } from './key-draft.ts'
import { LimitsInput } from './limits-input.tsx'
import { MetadataInput } from './metadata-input.tsx'

type KeyFieldsProps = {
  readonly draft: KeyDraft
  readonly mistakes: DraftMistakes
  onChange(change: Partial<KeyDraft>): void
}

const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Inputs for all fields of a key but the key itself. */
export function KeyFields(props: KeyFieldsProps) {
  const { draft, mistakes, onChange } = props
  return (
    <>
      <Identity {...props} />
      <Access {...props} />
      <Section
        title="Limits"
        about="Requests or tokens per second, minute or hour. A request must pass all of them."
      >
        <LimitsInput items={draft.limits} mistakes={mistakes} onChange={(limits) => onChange({ limits })} />
      </Section>
      <Section
        title="Budgets"
        about="Dollars or tokens per period, counted over all gateways with the same database."
      >
        <BudgetsInput
          items={draft.budgets}
          mistakes={mistakes}
          onChange={(budgets) => onChange({ budgets })}
        />
      </Section>
    </>
  )
}

function Identity({ draft, mistakes, onChange }: KeyFieldsProps) {
  return (
    <Section
      title="Identity"
      about="Metadata is in the log, in usage reports, and in expressions as apiKey.*"
    >
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-3">
        {(['name', 'user', 'group'] as const).map((field) => (
          <Field key={field} label={labels[field]} help={helps[field]}>
            {(control) => (
              <Input
                {...control}
                dir="auto"
                maxLength={1_000}
                value={draft[field]}
                onChange={(event) => onChange({ [field]: event.target.value })}
              />
            )}
          </Field>
        ))}
      </div>
      <MetadataInput
        items={draft.metadata}
        mistakes={mistakes}
        onChange={(metadata) => onChange({ metadata })}
      />
    </Section>
  )
}

const labels = { name: 'Name', user: 'User', group: 'Group' }
const helps = {
  name: 'Displayed in lists and logs.',
  user: 'Person or service that uses the key.',
  group: 'Team, for reports and metrics.',
}

function Access({ draft, onChange }: KeyFieldsProps) {
  const models = useNames('llm.model', 'llm.virtualModel')
  const targets = useNames('mcp.target')
  return (
    <Section title="Access" about="Without restrictions, the key may use every model and MCP server.">
      <div className="grid grid-cols-1 gap-6 lg:grid-cols-2">
        <AccessInput
          label="Models"
          help="Other models are refused, and absent from the list of models."
          values={draft.models}
          suggestions={models}
          onChange={(next) => onChange({ models: next })}
        />
        <AccessInput
          label="MCP servers"
          help="Tools, prompts and resources of other servers are hidden."
          values={draft.targets}
          suggestions={targets}
          onChange={(next) => onChange({ targets: next })}
        />
      </div>
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-2 lg:grid-cols-3">
        <Field label="Expires" help={`Local time (${localZone}). Empty: never.`}>
          {(control) => (
            <Input
              {...control}
              type="datetime-local"
              value={draft.expiresAt}
              onChange={(event) => onChange({ expiresAt: event.target.value })}
            />
          )}
        </Field>
        <Field label="Disabled" help="Refuses the key at once, and retains its record and usage.">
          {({ id, ...described }) => (
            <div className="flex h-8.5 items-center">
              <Switch
                id={id}
                {...described}
                checked={draft.disabled}
                onChange={(disabled) => onChange({ disabled })}
              />
            </div>
          )}
        </Field>
      </div>
    </Section>
  )
}

function Section({ title, about, children }: { title: string; about: string; children: ReactNode }) {
  return (
    <Card title={title} about={about}>
      <div className="space-y-5 pt-1">{children}</div>
    </Card>
  )
}

/** Names of records, as suggestions. */
function useNames(kind: string, second?: string): readonly string[] {
  const first = useRecords<{ name?: string }>(kind, { limit: 100 })
  const further = useRecords<{ name?: string }>(second ?? kind, { limit: 100 })
  const records = [...(first.data?.resources ?? []), ...(further.data?.resources ?? [])]
  return [...new Set(records.flatMap(({ value }) => (value.name === undefined ? [] : [value.name])))]
}
