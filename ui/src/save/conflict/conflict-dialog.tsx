import { lazy, Suspense, useMemo, useState } from 'react'
import type { ConfigRecord } from '../../api/resources.ts'
import { Button } from '../../components/action/button.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Segmented } from '../../components/form/segmented.tsx'
import { Dialog } from '../../components/layout/dialog.tsx'
import { formatDateTime } from '../../format/time.ts'
import { labelOf } from '../../schema-form/model/label.ts'
import { type Draft, titleOf } from '../requests.ts'
import { type Merge, mergeValues, resolveMerge } from './merge.ts'

const DiffView = lazy(() => import('../diff/diff-view.tsx'))

type Side = 'mine' | 'theirs'

type ConflictDialogProps = {
  readonly draft: Draft
  /** The current record; undefined if it was deleted. */
  readonly theirs: ConfigRecord<unknown> | undefined
  onCancel(): void
  onTheirs(): void
  onMerged(value: unknown): Promise<void>
}

/** The record was changed since it was loaded: theirs, mine, or both by field. */
export function ConflictDialog({ draft, theirs, onCancel, onTheirs, onMerged }: ConflictDialogProps) {
  const merge = useMemo(() => mergeValues(draft.record?.value, draft.value, theirs?.value), [draft, theirs])
  const [sides, setSides] = useState<readonly Side[]>(() => merge.conflicts.map(() => 'mine'))
  const [busy, setBusy] = useState(false)
  const proceed = async (value: unknown) => {
    setBusy(true)
    await onMerged(value)
  }
  const title = draft.record ? titleOf(draft.record) : ''
  const isMergeable = theirs !== undefined
  return (
    <Dialog
      open
      width="wide"
      onOpenChange={(open) => open || busy || onCancel()}
      title={`${title} was changed by someone else`}
      about={aboutOf(theirs)}
      footer={
        <>
          <Button onClick={onCancel} disabled={busy}>
            Back to editing
          </Button>
          <Button onClick={onTheirs} disabled={busy}>
            {theirs ? 'Use theirs' : 'Discard mine'}
          </Button>
          <Button busy={busy} onClick={() => proceed(draft.value)}>
            {theirs ? 'Use mine' : 'Create again'}
          </Button>
          {isMergeable && (
            <Button tone="primary" busy={busy} onClick={() => proceed(resolveMerge(merge, sides))}>
              Merge by field
            </Button>
          )}
        </>
      }
    >
      <div className="space-y-5">
        {theirs && (
          <section>
            <h3 className="mb-1.5 text-sm">Their change</h3>
            <Suspense fallback={<SkeletonLines />}>
              <DiffView before={draft.record?.value} after={theirs.value} />
            </Suspense>
          </section>
        )}
        <section>
          <h3 className="mb-1.5 text-sm">My change</h3>
          <Suspense fallback={<SkeletonLines />}>
            <DiffView before={draft.record?.value} after={draft.value} />
          </Suspense>
        </section>
        {isMergeable && <Fields merge={merge} sides={sides} onChange={setSides} />}
      </div>
    </Dialog>
  )
}

function aboutOf(theirs: ConfigRecord<unknown> | undefined): string {
  if (theirs === undefined) return 'The record was deleted while you edited it.'
  const at = theirs.updatedAt === undefined ? '' : ` at ${formatDateTime(theirs.updatedAt)}`
  return `It was saved${at}, after you had opened it. Nothing is stored until you choose.`
}

function Fields({
  merge,
  sides,
  onChange,
}: {
  merge: Merge
  sides: readonly Side[]
  onChange(sides: readonly Side[]): void
}) {
  const { conflicts, adopted } = merge
  if (conflicts.length === 0) {
    return (
      <Notice tone="good" title="Both changes fit together">
        {`Merging by field retains your change and adopts ${adopted.map(shown).join(', ') || 'theirs'}.`}
      </Notice>
    )
  }
  return (
    <section>
      <h3 className="mb-1.5 text-sm">Fields that both changed</h3>
      <ul className="divide-y divide-line rounded-lg border border-line">
        {conflicts.map((conflict, index) => (
          <li key={index} className="flex flex-wrap items-center justify-between gap-3 px-4 py-2.5">
            <div className="min-w-0 text-sm">
              <div className="font-medium break-words">{shown(conflict.path)}</div>
              <div className="text-xs break-words text-ink-soft">
                mine {excerpt(conflict.mine)}, theirs {excerpt(conflict.theirs)}
              </div>
            </div>
            <Segmented<Side>
              label={`Value of ${shown(conflict.path)}`}
              value={sides[index] ?? 'mine'}
              options={[
                { value: 'mine', label: 'Mine' },
                { value: 'theirs', label: 'Theirs' },
              ]}
              onChange={(side) => onChange(sides.with(index, side))}
            />
          </li>
        ))}
      </ul>
    </section>
  )
}

function shown(path: readonly (string | number)[]): string {
  return path.length === 0
    ? 'the whole value'
    : path.map((step) => (typeof step === 'number' ? String(step + 1) : labelOf(step))).join(' › ')
}

function excerpt(value: unknown): string {
  const text = value === undefined ? 'removed' : JSON.stringify(value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
