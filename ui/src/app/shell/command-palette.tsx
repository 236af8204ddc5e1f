import { CornerDownLeft } from 'lucide-react'
import { type KeyboardEvent, useId, useState } from 'react'
import { useLocation } from 'wouter'
import { classNames } from '../../components/class-names.ts'
import { Dialog } from '../../components/layout/dialog.tsx'
import { type NavigationItem, navigation } from '../navigation.ts'

type Entry = NavigationItem & { readonly group: string }

const entries: readonly Entry[] = navigation.flatMap(({ label, items }) =>
  items.map((item) => ({ ...item, group: label })),
)

/** Finds pages by name (Ctrl K). */
export function CommandPalette({ open, onOpenChange }: { open: boolean; onOpenChange(open: boolean): void }) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Jump to" width="medium">
      <PaletteBody onDone={() => onOpenChange(false)} />
    </Dialog>
  )
}

function PaletteBody({ onDone }: { onDone(): void }) {
  const [text, setText] = useState('')
  const [selected, setSelected] = useState(0)
  const [, navigate] = useLocation()
  const listId = useId()
  const found = search(text)
  const current = Math.min(selected, found.length - 1)
  const openEntry = (entry: Entry | undefined) => {
    if (!entry) return
    onDone()
    navigate(entry.path)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      setSelected((current + step + found.length) % Math.max(1, found.length))
    } else if (event.key === 'Enter') openEntry(found[current])
  }
  return (
    <div>
      <input
        role="combobox"
        aria-expanded
        aria-controls={listId}
        aria-activedescendant={found[current] && `${listId}-${current}`}
        aria-label="Search pages"
        placeholder="Page, task or word"
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setSelected(0)
        }}
        onKeyDown={onKeyDown}
        className="mb-3 h-10 w-full rounded-md border border-line-strong bg-surface px-3"
      />
      <div id={listId} role="listbox" aria-label="Pages" className="max-h-[50dvh] overflow-y-auto">
        {found.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard works through the combobox
          <div
            key={entry.path}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onClick={() => openEntry(entry)}
            onPointerMove={() => setSelected(index)}
            className={classNames(
              'flex items-center gap-3 rounded-md px-3 py-2 text-sm',
              index === current && 'bg-hover',
            )}
          >
            <entry.icon className="size-4 shrink-0 text-ink-faint" aria-hidden />
            <span className="flex-1">{entry.label}</span>
            <span className="text-xs text-ink-faint">{entry.group}</span>
            {index === current && <CornerDownLeft className="size-3.5 text-ink-faint" aria-hidden />}
          </div>
        ))}
        {found.length === 0 && (
          <p className="px-3 py-6 text-center text-sm text-ink-soft">No page matches.</p>
        )}
      </div>
    </div>
  )
}

function search(text: string): readonly Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  return entries.filter(({ label, group, words: more = '' }) => {
    const content = `${label} ${group} ${more}`.toLowerCase()
    return words.every((word) => content.includes(word))
  })
}
