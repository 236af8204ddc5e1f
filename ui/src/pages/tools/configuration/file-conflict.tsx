import { useMemo, useState } from 'react'
import { Button } from '../../../components/action/button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Segmented } from '../../../components/form/segmented.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { TextDiff } from '../../../save/diff/text-diff.tsx'
import { mergeTexts } from './merge-texts.ts'

type FileConflictProps = {
  /** The text as it was loaded, the own text, and the text of the file now. */
  readonly base: string
  readonly mine: string
  readonly theirs: string
  readonly busy: boolean
  onCancel(): void
  onChoose(text: string): void
}

type View = 'theirs' | 'mine' | 'both'

/** The file was changed meanwhile: their text, the own text, or both changes. */
export function FileConflict({ base, mine, theirs, busy, onCancel, onChoose }: FileConflictProps) {
  const merged = useMemo(() => mergeTexts(base, mine, theirs), [base, mine, theirs])
  const [view, setView] = useState<View>(merged === undefined ? 'theirs' : 'both')
  return (
    <Dialog
      open
      width="wide"
      onOpenChange={(open) => open || busy || onCancel()}
      title="The file was changed meanwhile"
      about="Another editor or person has saved the file since you opened it. Nothing of yours has been written."
      footer={
        <>
          <Button disabled={busy} onClick={onCancel}>
            Back to editing
          </Button>
          <Button disabled={busy} onClick={() => onChoose(theirs)}>
            Discard mine
          </Button>
          <Button tone="danger" busy={busy} onClick={() => onChoose(mine)}>
            Overwrite theirs
          </Button>
          {merged !== undefined && (
            <Button tone="primary" busy={busy} onClick={() => onChoose(merged)}>
              Keep both
            </Button>
          )}
        </>
      }
    >
      <div className="space-y-4">
        {merged === undefined && (
          <Notice tone="warn" title="Both change the same lines">
            Choose one of the texts, or go back to editing and copy what you need.
          </Notice>
        )}
        <Segmented<View>
          label="Changes"
          value={view}
          options={[
            ...(merged === undefined ? [] : [{ value: 'both' as const, label: 'Both' }]),
            { value: 'theirs', label: 'Their changes' },
            { value: 'mine', label: 'My changes' },
          ]}
          onChange={setView}
        />
        {view === 'both' && merged !== undefined ? (
          <TextDiff before={base} after={merged} />
        ) : (
          <TextDiff before={base} after={view === 'mine' ? mine : theirs} />
        )}
      </div>
    </Dialog>
  )
}
