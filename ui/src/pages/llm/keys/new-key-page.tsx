import { useState } from 'react'
import { useLocation } from 'wouter'
import { useWhoami } from '../../../api/whoami.ts'
import { ButtonLink } from '../../../components/action/button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { readOnlyReason } from '../../../save/ownership.ts'
import { useSave } from '../../../save/save.tsx'
import { SaveBar } from '../../../save/save-bar.tsx'
import { UnsavedGuard } from '../../../save/unsaved.tsx'
import { type DraftMistakes, emptyDraft, mistakesIn, recordOf } from './form/key-draft.ts'
import { KeyFields } from './form/key-fields.tsx'
import { MissingKeyPolicy } from './missing-key-policy.tsx'
import { OneTimeKey } from './one-time-key.tsx'

const noMistakes: DraftMistakes = new Map()

type Outcome =
  | { readonly kind: 'editing' }
  | { readonly kind: 'refused'; readonly message: string; readonly status: number }
  | { readonly kind: 'created'; readonly id: string; readonly secret: string }

/** Creates a virtual key. The gateway generates the key, which is displayed once. */
export default function NewKeyPage() {
  const [draft, setDraft] = useState(emptyDraft)
  const [mistakes, setMistakes] = useState(noMistakes)
  const [outcome, setOutcome] = useState<Outcome>({ kind: 'editing' })
  const { data: whoami } = useWhoami()
  const { save, busy, dialog } = useSave('llm.apiKey')
  const [, navigate] = useLocation()
  const reason = readOnlyReason(undefined, whoami)

  const submit = async () => {
    setOutcome({ kind: 'editing' })
    const found = mistakesIn(draft)
    setMistakes(found)
    if (found.size > 0) return
    const saved = await save({ record: undefined, value: recordOf(draft, {}) })
    if (saved.kind === 'refused') setOutcome(saved)
    if (saved.kind !== 'saved') return
    const { id, key } = saved.record as { readonly id: string; readonly key?: string }
    setOutcome({ kind: 'created', id, secret: key ?? '' })
  }

  return (
    <Page
      title="New key"
      about="The gateway generates the key and displays it once."
      actions={<ButtonLink href="/llm/keys">Back to the list</ButtonLink>}
    >
      <form
        noValidate
        className="space-y-6"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        {reason && <Notice title={reason} />}
        {outcome.kind === 'refused' &&
          (outcome.message.includes('require llm.policies.apiKey') ? (
            <MissingKeyPolicy onCreated={() => setOutcome({ kind: 'editing' })} />
          ) : (
            <Notice tone="bad" title={outcome.message} />
          ))}
        {mistakes.size > 0 && (
          <Notice tone="bad" title="Some fields need attention. They are marked below." />
        )}
        <KeyFields
          draft={draft}
          mistakes={mistakes}
          onChange={(change) => {
            setDraft((current) => ({ ...current, ...change }))
            setMistakes(noMistakes)
          }}
        />
        {reason === undefined && <SaveBar dirty busy={busy} isNew onDiscard={undefined} />}
      </form>
      <UnsavedGuard dirty={draft !== emptyDraft && outcome.kind !== 'created'} />
      {dialog}
      {outcome.kind === 'created' && (
        <OneTimeKey
          title={`Key created${draft.name === '' ? '' : `: ${draft.name}`}`}
          secret={outcome.secret}
          onClose={() => navigate(`/llm/keys/${encodeURIComponent(outcome.id)}`, { replace: true })}
        />
      )}
    </Page>
  )
}
