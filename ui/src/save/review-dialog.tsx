import { lazy, Suspense, useState } from 'react'
import type { ConfigRecord } from '../api/resources.ts'
import { Button } from '../components/action/button.tsx'
import { SkeletonLines } from '../components/feedback/skeleton.tsx'
import { Dialog } from '../components/layout/dialog.tsx'
import { isMasked, isObject } from '../schema-form/model/value.ts'
import { type Draft, titleOf } from './requests.ts'

const DiffView = lazy(() => import('./diff/diff-view.tsx'))

/** The change as a comparison, before it is stored. */
export function ReviewDialog({
  draft,
  after,
  onCancel,
  onConfirm,
}: {
  draft: Draft
  after: ConfigRecord<unknown>
  onCancel(): void
  onConfirm(): Promise<void>
}) {
  const [busy, setBusy] = useState(false)
  const before = draft.record?.value
  const secrets = replacedSecrets(before, draft.value)
  return (
    <Dialog
      open
      onOpenChange={(open) => open || busy || onCancel()}
      title={draft.record ? `Save ${titleOf(draft.record)}?` : `Create ${titleOf(after)}?`}
      about="The gateway has checked this change. It applies from the next request on."
      footer={
        <>
          <Button onClick={onCancel} disabled={busy}>
            Back to editing
          </Button>
          <Button
            tone="primary"
            busy={busy}
            onClick={async () => {
              setBusy(true)
              await onConfirm()
            }}
          >
            {draft.record ? 'Save' : 'Create'}
          </Button>
        </>
      }
    >
      <Suspense fallback={<SkeletonLines count={6} />}>
        <DiffView before={before} after={after.value} />
      </Suspense>
      {secrets.length > 0 && (
        <p className="mt-3 text-sm text-ink-soft">
          New secrets, not displayed: <span className="font-mono text-xs">{secrets.join(', ')}</span>
        </p>
      )}
    </Dialog>
  )
}

/** Places whose stored secret the draft replaces. */
function replacedSecrets(before: unknown, after: unknown, place = ''): readonly string[] {
  if (isMasked(before)) return isMasked(after) || after === undefined ? [] : [place]
  if (Array.isArray(before) && Array.isArray(after))
    return before.flatMap((item, index) => replacedSecrets(item, after[index], `${place}[${index}]`))
  if (!isObject(before) || !isObject(after)) return []
  return Object.entries(before).flatMap(([name, member]) =>
    replacedSecrets(member, after[name], place === '' ? name : `${place}.${name}`),
  )
}
