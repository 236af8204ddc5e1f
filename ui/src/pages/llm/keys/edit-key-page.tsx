import { useState } from 'react'
import { useLocation, useParams } from 'wouter'
import type { KeyValue } from '../../../api/llm/keys.ts'
import { type ConfigRecord, useRecord } from '../../../api/resources.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { ButtonLink } from '../../../components/action/button.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { editableRecord } from '../../../save/editable-value.ts'
import { readOnlyReason } from '../../../save/ownership.ts'
import { titleOf } from '../../../save/requests.ts'
import { useSave } from '../../../save/save.tsx'
import { SaveBar } from '../../../save/save-bar.tsx'
import { UnsavedGuard } from '../../../save/unsaved.tsx'
import { sameJson } from '../../../schema-form/model/value.ts'
import { type DraftMistakes, draftOf, mistakesIn, recordOf } from './form/key-draft.ts'
import { KeyFields } from './form/key-fields.tsx'

const noMistakes: DraftMistakes = new Map()

/** Edits the record of a virtual key. Its secret stays. */
export default function EditKeyPage() {
  const { id = '' } = useParams()
  const record = useRecord<KeyValue>('llm.apiKey', id)
  const back = <ButtonLink href={`/llm/keys/${encodeURIComponent(id)}`}>Back to the key</ButtonLink>
  if (record.data === undefined) {
    return (
      <Page title="Edit key" actions={back}>
        {record.error ? (
          <ErrorState error={record.error} onRetry={() => void record.refetch()} />
        ) : (
          <Card>
            <SkeletonLines count={8} />
          </Card>
        )}
      </Page>
    )
  }
  return (
    <Page
      title={`Edit ${titleOf(record.data)}`}
      about="Changes apply from the next request on. The secret stays."
      actions={back}
    >
      <Editor record={editableRecord(record.data) as ConfigRecord<KeyValue>} />
    </Page>
  )
}

function Editor({ record }: { record: ConfigRecord<KeyValue> }) {
  // The revision under edit: a newer one is a conflict, which the save flow resolves.
  const [base, setBase] = useState(record)
  const [draft, setDraft] = useState(() => draftOf(record.value))
  const [mistakes, setMistakes] = useState(noMistakes)
  const [message, setMessage] = useState<string>()
  const { data: whoami } = useWhoami()
  const { save, busy, dialog } = useSave('llm.apiKey')
  const [, navigate] = useLocation()
  const reason = readOnlyReason(base, whoami)
  const value = recordOf(draft, base.value)
  const dirty = !sameJson(value, base.value)

  const submit = async () => {
    setMessage(undefined)
    const found = mistakesIn(draft)
    setMistakes(found)
    if (found.size > 0) return
    const outcome = await save({ record: base, value })
    if (outcome.kind === 'refused') setMessage(outcome.message)
    if (outcome.kind === 'reloaded' && outcome.record) {
      const theirs = outcome.record as ConfigRecord<KeyValue>
      setBase(theirs)
      setDraft(draftOf(theirs.value))
    }
    if (outcome.kind === 'saved') {
      setBase({ ...base, value })
      navigate(`/llm/keys/${encodeURIComponent(base.id)}`)
    }
  }

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
      {mistakes.size > 0 && <Notice tone="bad" title="Some fields need attention. They are marked below." />}
      <fieldset disabled={reason !== undefined} className="min-w-0 space-y-6">
        <KeyFields
          draft={draft}
          mistakes={mistakes}
          onChange={(change) => {
            setDraft((current) => ({ ...current, ...change }))
            setMistakes(noMistakes)
          }}
        />
      </fieldset>
      {reason === undefined && (
        <SaveBar dirty={dirty} busy={busy} isNew={false} onDiscard={() => setDraft(draftOf(base.value))} />
      )}
      <UnsavedGuard dirty={dirty && !busy} />
      {dialog}
    </form>
  )
}
