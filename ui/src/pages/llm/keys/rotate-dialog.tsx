import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type NewKey, rotateKey, type VirtualKey } from '../../../api/llm/keys.ts'
import { Button } from '../../../components/action/button.tsx'
import { messageOf } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { formatDateTime } from '../../../format/time.ts'
import { OneTimeKey } from './one-time-key.tsx'

const overlaps = [
  { value: '0', label: 'ends at once' },
  { value: '1h', label: 'stays valid for 1 hour' },
  { value: '24h', label: 'stays valid for 24 hours' },
  { value: '7d', label: 'stays valid for 7 days' },
  { value: '30d', label: 'stays valid for 30 days' },
]

/** Replaces the secret of a key, and displays the new one once. */
export function RotateDialog({ virtualKey, onClose }: { virtualKey: VirtualKey; onClose(): void }) {
  const queries = useQueryClient()
  const [overlap, setOverlap] = useState('24h')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [rotated, setRotated] = useState<NewKey>()
  const { id, name, previousKeys = [] } = virtualKey
  const rotate = async () => {
    setBusy(true)
    setError(undefined)
    try {
      setRotated(await rotateKey(id, overlap))
      void queries.invalidateQueries()
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  if (rotated) {
    const { key, previousKeysExpireAt: end } = rotated
    return (
      <OneTimeKey
        title={`New secret of ${name ?? 'the key'}`}
        secret={key}
        note={
          end === undefined
            ? 'Earlier secrets are refused from now on.'
            : `Earlier secrets are valid until ${formatDateTime(end)}.`
        }
        onClose={onClose}
      />
    )
  }
  return (
    <Dialog
      open
      width="narrow"
      title={`Rotate ${name ?? 'this key'}?`}
      about="The key receives a new secret. Its id, usage, budgets and limits stay."
      onOpenChange={(open) => open || onClose()}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" busy={busy} onClick={() => void rotate()}>
            Rotate
          </Button>
        </>
      }
    >
      <div className="space-y-4">
        <Field
          label="The current secret"
          help={
            overlap === '0'
              ? 'Clients with it are refused until they have the new one.'
              : 'Replace it in all clients within this time.'
          }
        >
          {(control) => <Select {...control} options={overlaps} value={overlap} onChange={setOverlap} />}
        </Field>
        {previousKeys.length > 0 && (
          <p className="text-xs text-ink-faint">
            {previousKeys.length} earlier {previousKeys.length === 1 ? 'secret is' : 'secrets are'} still
            valid. No rotation extends them.
          </p>
        )}
        {error !== undefined && <Notice tone="bad" title={messageOf(error)} />}
      </div>
    </Dialog>
  )
}
