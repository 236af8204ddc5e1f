import { type ReactNode, useId, useState } from 'react'
import { Button } from '../action/button.tsx'
import { messageOf } from '../feedback/error-state.tsx'
import { Notice } from '../feedback/notice.tsx'
import { inputClass } from '../form/input.tsx'
import { Dialog } from './dialog.tsx'

type ConfirmProps = {
  readonly open: boolean
  onOpenChange(open: boolean): void
  readonly title: string
  /** Name that must be typed where the action cannot be undone. */
  readonly name?: string | undefined
  readonly action: string
  onConfirm(): Promise<void>
  readonly children: ReactNode
}

/** Asks before an action. Stays open with the error if the action fails. */
export function Confirm({ open, onOpenChange, title, name, action, onConfirm, children }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const id = useId()
  const close = (next: boolean) => {
    setTyped('')
    setError(undefined)
    onOpenChange(next)
  }
  const confirm = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await onConfirm()
      close(false)
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog
      open={open}
      onOpenChange={close}
      title={title}
      width="narrow"
      footer={
        <>
          <Button onClick={() => close(false)}>Cancel</Button>
          <Button tone="danger" busy={busy} disabled={name !== undefined && typed !== name} onClick={confirm}>
            {action}
          </Button>
        </>
      }
    >
      <div className="space-y-4 text-sm">
        <div className="text-ink-soft">{children}</div>
        {name !== undefined && (
          <div>
            <label htmlFor={id} className="block break-words">
              Type <b className="font-mono">{name}</b> to confirm
            </label>
            <input
              id={id}
              className={inputClass}
              value={typed}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setTyped(event.target.value)}
            />
          </div>
        )}
        {error !== undefined && <Notice tone="bad" title={messageOf(error)} />}
      </div>
    </Dialog>
  )
}
