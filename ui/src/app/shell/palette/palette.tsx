import { CornerDownLeft } from 'lucide-react'
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { useMayChange } from '../../../api/whoami.ts'
import { classNames } from '../../../components/class-names.ts'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { recentPaths } from '../recent-pages.ts'
import { useFoundRecords } from './found-records.ts'
import { type PaletteEntry, staticEntries } from './static-entries.ts'

/** Finds pages, actions, records and requests (Ctrl K). */
export default function CommandPalette({ onClose }: { onClose(): void }) {
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title="Jump to" width="medium">
      <PaletteBody onDone={onClose} />
    </Dialog>
  )
}

function PaletteBody({ onDone }: { onDone(): void }) {
  const [text, setText] = useState('')
  const [selected, setSelected] = useState(0)
  const [, navigate] = useLocation()
  const listId = useId()
  const mayChange = useMayChange()
  const records = useFoundRecords(text)
  const found = [...staticEntries(text, { mayChange, recent: recentPaths() }), ...records.entries]
  const current = Math.min(selected, found.length - 1)
  const choose = (entry: PaletteEntry | undefined) => {
    if (!entry) return
    onDone()
    if (entry.kind === 'page') navigate(entry.path)
    else entry.run()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      setSelected((current + step + found.length) % Math.max(1, found.length))
    } else if (event.key === 'Enter') choose(found[current])
  }
  return (
    <div>
      <input
        role="combobox"
        aria-expanded
        aria-controls={listId}
        aria-activedescendant={found[current] && `${listId}-${current}`}
        aria-label="Search pages, actions and records"
        placeholder="Page, action, name of a record, or request id"
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setSelected(0)
        }}
        onKeyDown={onKeyDown}
        className="mb-3 h-10 w-full rounded-md border border-line-strong bg-surface px-3"
      />
      <div id={listId} role="listbox" aria-label="Results" className="max-h-[55dvh] overflow-y-auto">
        {found.map((entry, index) => (
          <Option
            key={`${entry.group} ${entry.label} ${entry.kind === 'page' ? entry.path : ''}`}
            id={`${listId}-${index}`}
            entry={entry}
            first={found[index - 1]?.group !== entry.group}
            selected={index === current}
            onSelect={() => setSelected(index)}
            onChoose={() => choose(entry)}
          />
        ))}
      </div>
      <p
        role="status"
        className={found.length > 0 ? 'sr-only' : 'px-3 py-6 text-center text-sm text-ink-soft'}
      >
        {found.length > 0 ? `${found.length} results` : records.busy ? 'Searching' : 'Nothing matches.'}
      </p>
    </div>
  )
}

function Option({
  id,
  entry,
  first,
  selected,
  onSelect,
  onChoose,
}: {
  id: string
  entry: PaletteEntry
  /** Whether the heading of the group precedes it. */
  first: boolean
  selected: boolean
  onSelect(): void
  onChoose(): void
}) {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (selected) element.current?.scrollIntoView({ block: 'nearest' })
  }, [selected])
  return (
    <>
      {first && (
        <div
          role="presentation"
          className="px-3 pt-2 pb-1 text-2xs font-medium tracking-wide text-ink-faint uppercase"
        >
          {entry.group}
        </div>
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard works through the combobox */}
      <div
        ref={element}
        id={id}
        role="option"
        tabIndex={-1}
        aria-selected={selected}
        onClick={onChoose}
        onPointerMove={onSelect}
        className={classNames('flex items-center gap-3 rounded-md px-3 py-2 text-sm', selected && 'bg-hover')}
      >
        <entry.icon className="size-4 shrink-0 text-ink-faint" aria-hidden />
        <span className="min-w-0 flex-1 truncate">{entry.label}</span>
        {entry.hint && <span className="shrink-0 text-xs text-ink-faint">{entry.hint}</span>}
        {selected && <CornerDownLeft className="size-3.5 shrink-0 text-ink-faint" aria-hidden />}
      </div>
    </>
  )
}
