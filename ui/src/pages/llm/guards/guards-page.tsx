import { useState } from 'react'
import { type ConfigRecord, useKindSchema } from '../../../api/resources.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { readOnlyReason } from '../../../save/ownership.ts'
import { useSave } from '../../../save/save.tsx'
import { SaveBar } from '../../../save/save-bar.tsx'
import { UnsavedGuard } from '../../../save/unsaved.tsx'
import type { JsonSchema } from '../../../schema-form/model/schema.ts'
import { sameJson } from '../../../schema-form/model/value.ts'
import { GuardList } from './guard-list.tsx'
import { guardSchemaOf } from './guard-schema.ts'
import type { Direction, Guardrails } from './guard-value.ts'
import { TryGuards } from './try-guards.tsx'
import { useGuardrails } from './use-guardrails.ts'

const title = 'Guards'
const about =
  'Guards check, mask or reject the contents of requests and responses, in order. Try a text before you save.'

/** The shared guards of all models: order, settings, and a trial of texts. */
export default function GuardsPage() {
  const record = useGuardrails()
  const schema = useKindSchema('llm.policy', 'guardrails')
  const error = record.error ?? schema.error
  if (error) {
    return (
      <Page title={title} about={about}>
        <ErrorState error={error} onRetry={() => void (record.error ? record.refetch() : schema.refetch())} />
      </Page>
    )
  }
  if (record.data === undefined || schema.data === undefined) {
    return (
      <Page title={title} about={about}>
        <Card>
          <SkeletonLines count={8} />
        </Card>
      </Page>
    )
  }
  return (
    <Page title={title} about={about}>
      <Editor record={record.data.record} schema={schema.data} />
    </Page>
  )
}

function Editor({ record, schema }: { record: ConfigRecord<Guardrails> | undefined; schema: JsonSchema }) {
  const [base, setBase] = useState(record)
  const [draft, setDraft] = useState<Guardrails>(record?.value ?? {})
  const [message, setMessage] = useState<string>()
  const { data: whoami } = useWhoami()
  const { save, busy, dialog } = useSave('llm.policy')
  const reason = readOnlyReason(base, whoami)
  const dirty = !sameJson(draft, base?.value ?? {})
  // A change elsewhere is adopted while nothing is edited; otherwise the save flow merges.
  if (!dirty && record !== base) {
    setBase(record)
    setDraft(record?.value ?? {})
  }
  const submit = async () => {
    setMessage(undefined)
    const outcome = await save({ record: base, value: draft, name: 'guardrails' })
    if (outcome.kind === 'refused') setMessage(outcome.message)
    if (outcome.kind !== 'saved' && outcome.kind !== 'reloaded') return
    const next = outcome.record as ConfigRecord<Guardrails> | undefined
    setBase(next)
    setDraft(next?.value ?? {})
  }
  const list = (direction: Direction) => (
    <GuardList
      direction={direction}
      guards={draft[direction] ?? []}
      schema={guardSchemaOf(schema, direction)}
      readOnly={reason !== undefined}
      onChange={(guards) => {
        const { [direction]: _, ...rest } = draft
        setDraft(guards.length === 0 ? rest : { ...rest, [direction]: guards })
      }}
    />
  )
  return (
    <form
      noValidate
      className="space-y-6"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      {reason && <Notice title={reason} />}
      {message && <Notice tone="bad" title={message} />}
      <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-2">
        {list('request')}
        {list('response')}
      </div>
      <TryGuards guardrails={draft} schema={schema} />
      {reason === undefined && (
        <SaveBar
          dirty={dirty}
          busy={busy}
          isNew={false}
          onDiscard={() => {
            setDraft(base?.value ?? {})
            setMessage(undefined)
          }}
        />
      )}
      <UnsavedGuard dirty={dirty && !busy} />
      {dialog}
    </form>
  )
}
