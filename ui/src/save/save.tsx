import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useCallback, useRef, useState } from 'react'
import type { ConfigRecord } from '../api/resources.ts'
import { toast } from '../components/feedback/toasts.tsx'
import { isObject, sameJson } from '../schema-form/model/value.ts'
import { ConflictDialog } from './conflict/conflict-dialog.tsx'
import { editableRecord } from './editable-value.ts'
import { type Refusal, refusalOf } from './refusal.ts'
import { RemoveDialog } from './remove-dialog.tsx'
import { type Draft, findRecord, nameExists, nameOf, putDraft, removeRecord } from './requests.ts'
import { ReviewDialog } from './review-dialog.tsx'
import { offerRestore, offerUndo } from './undo.ts'

export type SaveOutcome =
  | { readonly kind: 'saved'; readonly record: ConfigRecord<unknown> }
  | { readonly kind: 'removed' }
  | { readonly kind: 'cancelled' }
  | ({ readonly kind: 'refused' } & Refusal)
  /** The user chose the other version: the form should display it. */
  | { readonly kind: 'reloaded'; readonly record: ConfigRecord<unknown> | undefined }

export type Save = {
  /**
   * Stores a value: dry run, comparison, then the change itself with the revision of the record. Resolves when
   * the dialogs are closed. A refusal has the mistakes of its fields, for `form.setMistakes`.
   */
  save(draft: Omit<Draft, 'kind'>): Promise<SaveOutcome>
  /** Deletes a record after confirmation by name. */
  remove(record: ConfigRecord<unknown>): Promise<SaveOutcome>
  readonly busy: boolean
  /** Dialogs of the flow: render them once in the page. */
  readonly dialog: ReactNode
}

type Step =
  | { readonly kind: 'review'; readonly draft: Draft; readonly after: ConfigRecord<unknown> }
  | { readonly kind: 'conflict'; readonly draft: Draft; readonly theirs: ConfigRecord<unknown> | undefined }
  | { readonly kind: 'remove'; readonly record: ConfigRecord<unknown> }

/**
 * The one way to change a config resource.
 *
 *     const { save, remove, busy, dialog } = useSave('llm.model')
 *     const outcome = await save({ record, value: form.value })   // record undefined: create
 *     if (outcome.kind === 'refused') form.setMistakes(outcome.mistakes)
 *     return <Page ...>{dialog}</Page>
 */
export function useSave(kind: string): Save {
  const queries = useQueryClient()
  const [step, setStep] = useState<Step>()
  const [busy, setBusy] = useState(false)
  const resolve = useRef<(outcome: SaveOutcome) => void>(undefined)

  const finish = useCallback((outcome: SaveOutcome) => {
    setStep(undefined)
    setBusy(false)
    resolve.current?.(outcome)
    resolve.current = undefined
  }, [])

  const begin = useCallback(
    (first: () => Promise<Step | SaveOutcome>) =>
      new Promise<SaveOutcome>((done) => {
        resolve.current?.({ kind: 'cancelled' })
        resolve.current = done
        setBusy(true)
        first().then(
          (next) => (isStep(next) ? setStep(next) : finish(next)),
          (error) => finish({ kind: 'refused', ...refusalOf(error, undefined) }),
        )
      }),
    [finish],
  )

  const stored = useCallback(
    async (draft: Draft) => {
      const record = await putDraft(draft, { dryRun: false })
      offerUndo(draft, record, () => queries.invalidateQueries())
      void queries.invalidateQueries()
      return { kind: 'saved', record } as const
    },
    [queries],
  )

  const save = useCallback(
    (draft: Omit<Draft, 'kind'>) => begin(() => prepare({ ...draft, kind })),
    [begin, kind],
  )
  const remove = useCallback(
    (record: ConfigRecord<unknown>) => begin(async () => ({ kind: 'remove', record })),
    [begin],
  )
  const proceed = (next: Step | SaveOutcome) => (isStep(next) ? setStep(next) : finish(next))
  const cancel = () => finish({ kind: 'cancelled' })
  const dialog = step && (
    <>
      {step.kind === 'review' && (
        <ReviewDialog
          {...step}
          onCancel={cancel}
          onConfirm={async () => {
            proceed(await attempt(step.draft, () => stored(step.draft)))
          }}
        />
      )}
      {step.kind === 'conflict' && (
        <ConflictDialog
          {...step}
          onCancel={cancel}
          onTheirs={() => {
            void queries.invalidateQueries()
            finish({ kind: 'reloaded', record: step.theirs })
          }}
          onMerged={async (value) => {
            proceed(await prepare({ ...step.draft, record: step.theirs, value }))
          }}
        />
      )}
      {step.kind === 'remove' && (
        <RemoveDialog
          record={step.record}
          onCancel={cancel}
          onConfirm={async () => {
            await removeRecord(step.record)
            offerRestore(step.record, () => queries.invalidateQueries())
            void queries.invalidateQueries({
              // The page of the record is left: another request for it would be refused.
              predicate: ({ state: { data } }) => !isObject(data) || data['id'] !== step.record.id,
            })
            finish({ kind: 'removed' })
          }}
        />
      )}
    </>
  )
  return { save, remove, busy, dialog }
}

function isStep(next: Step | SaveOutcome): next is Step {
  return next.kind === 'review' || next.kind === 'conflict' || next.kind === 'remove'
}

/** The dry run: what would be stored, the conflict, or the refusal. */
async function prepare(draft: Draft): Promise<Step | SaveOutcome> {
  const { kind, record, value } = draft
  if (record !== undefined && sameJson(record.value, value)) {
    toast('good', 'Nothing has changed')
    return { kind: 'cancelled' }
  }
  return await attempt(draft, async () => {
    const name = record === undefined ? (draft.name ?? nameOf(kind, value)) : undefined
    if (name !== undefined && (await nameExists(kind, name))) return takenName(name)
    return { kind: 'review', draft, after: editableRecord(await putDraft(draft, { dryRun: true })) }
  })
}

function takenName(name: string): SaveOutcome {
  const message = `${name} exists already: choose another name, or edit that record`
  return { kind: 'refused', message, status: 409, mistakes: [{ path: ['name'], message: 'exists already' }] }
}

/** Runs a step. A newer revision becomes the conflict, another refusal the outcome. */
async function attempt(draft: Draft, run: () => Promise<Step | SaveOutcome>): Promise<Step | SaveOutcome> {
  try {
    return await run()
  } catch (error) {
    const refusal = refusalOf(error, draft.value)
    if (refusal.status !== 412 || draft.record === undefined) return { kind: 'refused', ...refusal }
    return { kind: 'conflict', draft, theirs: await findRecord(draft.kind, draft.record.id) }
  }
}
