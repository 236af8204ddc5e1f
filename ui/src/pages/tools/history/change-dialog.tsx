import { useQueryClient } from '@tanstack/react-query'
import { Undo2 } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { type HistoryDetail, revertChange, useHistoryDetail } from '../../../api/tools/history.ts'
import { useMayChange } from '../../../api/whoami.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { CopyButton } from '../../../components/action/copy-button.tsx'
import { Facts } from '../../../components/data/facts.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { toast } from '../../../components/feedback/toasts.tsx'
import { Confirm } from '../../../components/layout/confirm.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { formatDateTime } from '../../../format/time.ts'

const DiffView = lazy(() => import('../../../save/diff/diff-view.tsx'))

/** One recorded change with its differences, and its revert. */
export function ChangeDialog({ id, onClose }: { id: string; onClose(): void }) {
  const { data, error, refetch } = useHistoryDetail(id)
  const mayChange = useMayChange()
  const [isReverting, setReverting] = useState(false)
  return (
    <>
      <Dialog
        open
        place="side"
        width="medium"
        onOpenChange={(open) => open || onClose()}
        title={data === undefined ? `Change ${id}` : (data.name ?? data.resourceId)}
        about={data && `${data.kind}, change ${data.id}`}
        footer={
          data && (
            <>
              {data.operation !== 'delete' && (
                <ButtonLink
                  href={`/resources/${encodeURIComponent(data.kind)}/${encodeURIComponent(addressOf(data))}`}
                >
                  Open the record
                </ButtonLink>
              )}
              {mayChange && (
                <Button tone="danger" icon={Undo2} onClick={() => setReverting(true)}>
                  Revert
                </Button>
              )}
            </>
          )
        }
      >
        {error ? (
          <ErrorState error={error} onRetry={() => void refetch()} />
        ) : data === undefined ? (
          <SkeletonLines count={8} />
        ) : (
          <Details change={data} />
        )}
      </Dialog>
      {data && isReverting && (
        <RevertDialog
          change={data}
          onOpenChange={setReverting}
          onReverted={() => {
            setReverting(false)
            onClose()
          }}
        />
      )}
    </>
  )
}

/** A policy is addressed by its name. */
function addressOf({ kind, name, resourceId }: HistoryDetail): string {
  return kind.endsWith('.policy') ? (name ?? resourceId) : resourceId
}

function Details({ change }: { change: HistoryDetail }) {
  const { at, operation, origin, reverts, revision, who, requestId, unreadable } = change
  return (
    <div className="space-y-5">
      <Facts
        facts={[
          ['Time', formatDateTime(at)],
          ['Change', reverts === undefined ? operation : `${operation}: revert of change ${reverts}`],
          ['By', who.principal ?? `${who.address}, without a login`],
          ['Address', who.principal && who.address],
          ['Revision', revision],
          ['Through', origin === 'write' ? undefined : origin],
          [
            'Request',
            <span key="request" className="inline-flex max-w-full items-center gap-1">
              <span className="truncate font-mono text-xs">{requestId}</span>
              <CopyButton text={requestId} label="Copy the id of the request" />
            </span>,
          ],
        ]}
      />
      {unreadable && <Notice tone="warn" title={unreadable} />}
      <Suspense fallback={<SkeletonLines count={6} />}>
        <DiffView before={change.before} after={change.after} />
      </Suspense>
      <p className="text-xs text-ink-faint">
        Secrets are masked; a changed secret has the same mask on both sides.
      </p>
    </div>
  )
}

function RevertDialog({
  change,
  onOpenChange,
  onReverted,
}: {
  change: HistoryDetail
  onOpenChange(open: boolean): void
  onReverted(): void
}) {
  const queries = useQueryClient()
  const { id, name, resourceId, operation, revision, currentRevision } = change
  const title = name ?? resourceId
  const later = currentRevision !== undefined && currentRevision > revision ? currentRevision - revision : 0
  return (
    <Confirm
      open
      onOpenChange={onOpenChange}
      title={`Revert this change of ${title}?`}
      action="Revert"
      onConfirm={async () => {
        const options = { revision: currentRevision }
        await revertChange(id, { ...options, dryRun: true })
        await revertChange(id, { ...options, dryRun: false })
        toast('good', `${title} is as it was before change ${id}`)
        await queries.invalidateQueries()
        onReverted()
      }}
    >
      <p>{effects[operation]} The revert is recorded too, and can be reverted.</p>
      {later > 0 && (
        <p className="mt-2">
          The record was changed {later === 1 ? 'once' : `${later} times`} since; the revert overwrites that.
        </p>
      )}
    </Confirm>
  )
}

const effects: Record<HistoryDetail['operation'], string> = {
  create: 'The record is deleted.',
  update: 'The record returns to its value before the change.',
  delete: 'The record is created again with its id.',
}
