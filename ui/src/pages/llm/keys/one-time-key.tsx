import { useEffect, useId, useState } from 'react'
import { enterKey } from '../../../api/entered-key.ts'
import { Button } from '../../../components/action/button.tsx'
import { CopyButton } from '../../../components/action/copy-button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'

/** Displays a new key once. The dialog closes only after the user has confirmed to have stored the key. */
export function OneTimeKey({
  title,
  secret,
  note,
  onClose,
}: {
  title: string
  secret: string
  note?: string | undefined
  onClose(): void
}) {
  const [stored, setStored] = useState(false)
  const id = useId()
  // The chat and the snippets of this page use it until a reload.
  useEffect(() => enterKey(secret), [secret])
  return (
    <Dialog
      open
      title={title}
      about="This is the only time the key is displayed: the gateway stores its hash alone."
      onOpenChange={(open) => !open && stored && onClose()}
      footer={
        <Button tone="primary" disabled={!stored} onClick={onClose}>
          Done
        </Button>
      }
    >
      <div className="space-y-4">
        <div className="flex flex-wrap items-center gap-3 rounded-lg border border-accent bg-accent-soft p-4">
          <code className="min-w-0 flex-1 font-mono text-sm break-all select-all" data-testid="new-key">
            {secret}
          </code>
          <CopyButton withText text={secret} label="Copy key" />
        </div>
        {note && <Notice title={note} />}
        <div className="flex items-center gap-2.5 text-sm">
          <input
            id={id}
            type="checkbox"
            className="size-4 accent-accent"
            checked={stored}
            onChange={(event) => setStored(event.target.checked)}
          />
          <label htmlFor={id}>I have stored the key in a safe place</label>
        </div>
      </div>
    </Dialog>
  )
}
