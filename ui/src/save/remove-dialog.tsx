import type { ConfigRecord } from '../api/resources.ts'
import { Confirm } from '../components/layout/confirm.tsx'
import { titleOf } from './requests.ts'

/** Asks for the name of a record before it is deleted. */
export function RemoveDialog({
  record,
  onCancel,
  onConfirm,
}: {
  record: ConfigRecord<unknown>
  onCancel(): void
  onConfirm(): Promise<void>
}) {
  const title = titleOf(record)
  return (
    <Confirm
      open
      onOpenChange={(open) => open || onCancel()}
      title={`Delete ${title}?`}
      name={title}
      action="Delete"
      onConfirm={onConfirm}
    >
      Requests that depend on it fail from then on. A record that others refer to cannot be deleted.
    </Confirm>
  )
}
