import { useState } from 'react'
import type { FileChange, FileCheck } from '../../../api/tools/config-file.ts'
import { Button } from '../../../components/action/button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Segmented } from '../../../components/form/segmented.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { TextDiff } from '../../../save/diff/text-diff.tsx'

type FileReviewProps = {
  readonly check: FileCheck
  readonly before: string
  readonly after: string
  readonly busy: boolean
  onCancel(): void
  onConfirm(): void
}

type View = 'text' | 'effect'

/** The change of the text and of the configuration, before it is saved. */
export function FileReview({ check, before, after, busy, onCancel, onConfirm }: FileReviewProps) {
  const [view, setView] = useState<View>('text')
  const { changes, needsRestart } = check
  return (
    <Dialog
      open
      width="wide"
      onOpenChange={(open) => open || busy || onCancel()}
      title="Save the configuration file?"
      about="The gateway has checked the text. It is written at once and applies from the next request on."
      footer={
        <>
          <Button onClick={onCancel} disabled={busy}>
            Back to editing
          </Button>
          <Button tone="primary" busy={busy} onClick={onConfirm}>
            Save
          </Button>
        </>
      }
    >
      <div className="space-y-4">
        {needsRestart && (
          <Notice tone="warn" title="Some of these settings are read at start">
            They take effect after a restart of the gateway.
          </Notice>
        )}
        <Segmented<View>
          label="View"
          value={view}
          options={[
            { value: 'text', label: 'Text' },
            { value: 'effect', label: `What changes (${changes.length})` },
          ]}
          onChange={setView}
        />
        {view === 'text' ? <TextDiff before={before} after={after} /> : <Changes changes={changes} />}
      </div>
    </Dialog>
  )
}

function Changes({ changes }: { changes: readonly FileChange[] }) {
  if (changes.length === 0)
    return (
      <p className="text-sm text-ink-soft">Only comments and layout: the configuration stays the same.</p>
    )
  return (
    <ul className="divide-y divide-line rounded-lg border border-line">
      {changes.map(({ path, before, after }) => (
        <li key={path} className="min-w-0 px-4 py-2.5 text-sm">
          <div className="font-mono text-xs break-all">{path}</div>
          <div className="mt-1 grid gap-1 text-xs">
            <Side name="Before" value={before} look="bg-bad-soft" />
            <Side name="After" value={after} look="bg-good-soft" />
          </div>
        </li>
      ))}
    </ul>
  )
}

function Side({ name, value, look }: { name: string; value: unknown; look: string }) {
  return (
    <div className="flex items-baseline gap-2">
      <span className="w-12 shrink-0 text-ink-faint">{name}</span>
      {value === undefined ? (
        <span className="text-ink-faint">not set</span>
      ) : (
        <code className={`rounded px-1.5 py-0.5 break-all ${look}`}>{shortened(JSON.stringify(value))}</code>
      )}
    </div>
  )
}

const maxLength = 400

function shortened(text: string): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
}
