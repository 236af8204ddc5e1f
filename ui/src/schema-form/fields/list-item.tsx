import { ChevronDown, ChevronUp, GripVertical, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { IconButton } from '../../components/action/icon-button.tsx'
import { classNames } from '../../components/class-names.ts'
import { Tooltip } from '../../components/feedback/tooltip.tsx'
import { useFormContext } from '../form-context.ts'
import { Mistakes } from '../frame/field-row.tsx'
import type { JsonSchema } from '../model/schema.ts'
import { summaryOf } from '../model/summary.ts'
import type { FieldPath } from '../model/value.ts'
import { NodeInput } from './node-input.tsx'

type ListItemProps = {
  readonly id: string
  readonly schema: JsonSchema
  readonly item: unknown
  readonly index: number
  readonly path: FieldPath
  readonly label: string
  readonly compact: boolean
  readonly movable: boolean
  readonly dragged: boolean
  onDrag(index: number | undefined): void
  onDrop(): void
  onMove(to: number): void
  onRemove(): void
}

/** One item of a list: a line, or a card that can be folded. */
export function ListItem(props: ListItemProps) {
  const { id, schema, item, index, path, label, compact, movable, dragged, onMove, onRemove } = props
  const { readOnly, mistakesBelow } = useFormContext()
  const [over, setOver] = useState(false)
  const [open, setOpen] = useState(() => index < 3)
  const place = [...path, index]
  const name = `${label} ${index + 1}`
  const isOpen = compact || open || mistakesBelow(place) > 0
  const controls = (
    <>{!readOnly && <IconButton icon={Trash2} label={`Remove ${name}`} tone="danger" onClick={onRemove} />}</>
  )
  const input = (
    <>
      <NodeInput schema={schema} value={item} path={place} label={name} optional={false} bare />
      <Mistakes path={place} />
    </>
  )
  return (
    <li
      id={id}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        props.onDrop()
      }}
      className={classNames(
        'min-w-0',
        compact ? 'flex items-start gap-1' : 'rounded-lg border border-line bg-surface',
        dragged && 'opacity-50',
        over && 'outline-2 outline-accent',
      )}
    >
      {compact ? (
        <>
          {movable && <Handle name={name} index={index} onDrag={props.onDrag} onMove={onMove} />}
          <div className="min-w-0 flex-1">{input}</div>
          {controls}
        </>
      ) : (
        <>
          <div className="flex items-center gap-1 py-1 pr-1 pl-1.5">
            {movable && <Handle name={name} index={index} onDrag={props.onDrag} onMove={onMove} />}
            <button
              type="button"
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
              className="flex min-w-0 flex-1 items-center gap-2 rounded-md px-1.5 py-1 text-left text-sm"
            >
              <span className="text-xs text-ink-faint tabular">{index + 1}</span>
              <span className="truncate font-medium">{summaryOf(item) ?? 'New item'}</span>
              {isOpen ? (
                <ChevronUp className="ml-auto size-4 shrink-0 text-ink-faint" aria-hidden />
              ) : (
                <ChevronDown className="ml-auto size-4 shrink-0 text-ink-faint" aria-hidden />
              )}
            </button>
            {controls}
          </div>
          {isOpen && <div className="border-t border-line px-4 py-1">{input}</div>}
        </>
      )}
    </li>
  )
}

/** Drag handle; arrow keys move the item too. */
function Handle({
  name,
  index,
  onDrag,
  onMove,
}: {
  name: string
  index: number
  onDrag(index: number | undefined): void
  onMove(to: number): void
}) {
  return (
    <Tooltip text="Drag, or press the arrow keys, to change the order">
      <button
        type="button"
        draggable
        aria-label={`Move ${name}: arrow keys`}
        onDragStart={(event) => {
          event.dataTransfer.effectAllowed = 'move'
          event.dataTransfer.setData('text/plain', name)
          onDrag(index)
        }}
        onDragEnd={() => onDrag(undefined)}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return
          event.preventDefault()
          onMove(event.key === 'ArrowUp' ? index - 1 : index + 1)
        }}
        className="grid h-8.5 w-6 shrink-0 cursor-grab place-items-center rounded-md text-ink-faint hover:bg-hover hover:text-ink"
      >
        <GripVertical className="size-4" aria-hidden />
      </button>
    </Tooltip>
  )
}
