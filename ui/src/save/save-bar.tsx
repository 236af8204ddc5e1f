import { Save as SaveIcon, Undo2 } from 'lucide-react'
import { Button } from '../components/action/button.tsx'

/** Bar at the end of a form: its state, discard, and the button that submits it. */
export function SaveBar({
  dirty,
  busy,
  isNew,
  onDiscard,
}: {
  dirty: boolean
  busy: boolean
  isNew: boolean
  onDiscard: (() => void) | undefined
}) {
  return (
    <div
      data-bottom-bar
      className="sticky bottom-0 z-10 -mx-4 flex flex-wrap items-center justify-end gap-2 border-t border-line bg-canvas px-4 py-3 sm:mx-0 sm:rounded-xl sm:border sm:bg-surface sm:shadow-card"
    >
      <span role="status" className="mr-auto text-xs text-ink-faint">
        {isNew ? 'Not created yet' : dirty ? 'Unsaved changes' : 'No changes'}
      </span>
      {onDiscard && dirty && (
        <Button tone="quiet" icon={Undo2} disabled={busy} onClick={onDiscard}>
          Discard
        </Button>
      )}
      <Button type="submit" tone="primary" icon={SaveIcon} busy={busy} disabled={!dirty}>
        {isNew ? 'Review and create' : 'Review and save'}
      </Button>
    </div>
  )
}
