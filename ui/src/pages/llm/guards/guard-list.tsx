import { ChevronDown, ChevronUp, GripVertical, Pencil, Plus, ShieldCheck, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../../components/action/button.tsx'
import { IconButton } from '../../../components/action/icon-button.tsx'
import { Menu } from '../../../components/action/menu.tsx'
import { classNames } from '../../../components/class-names.ts'
import { Badge } from '../../../components/feedback/badge.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { labelOf } from '../../../schema-form/model/label.ts'
import type { JsonSchema } from '../../../schema-form/model/schema.ts'
import { withItemMoved } from '../../../schema-form/model/value.ts'
import { GuardDialog } from './guard-dialog.tsx'
import { guardKindsOf } from './guard-schema.ts'
import { actionOf, type Direction, type Guard, kindOf, summaryOf } from './guard-value.ts'

type GuardListProps = {
  readonly direction: Direction
  readonly guards: readonly Guard[]
  /** Schema of one guard. */
  readonly schema: JsonSchema
  readonly readOnly: boolean
  onChange(guards: readonly Guard[]): void
}

type Editing = { readonly index: number | undefined; readonly guard: Guard; readonly kind: string }

const headings = {
  request: ['Requests', 'Before the call of the model.'],
  response: ['Responses', 'Before the response to the client.'],
} as const

/** Guards of one direction in their order, which dragging and the keyboard change. */
export function GuardList({ direction, guards, schema, readOnly, onChange }: GuardListProps) {
  const [editing, setEditing] = useState<Editing>()
  const [dragged, setDragged] = useState<number>()
  const [announcement, setAnnouncement] = useState('')
  const kinds = guardKindsOf(schema)
  const names = kinds.map(({ name }) => name)
  const [heading, about] = headings[direction]
  const move = (from: number, to: number) => {
    if (to < 0 || to >= guards.length || from === to) return
    onChange(withItemMoved(guards, from, to))
    setAnnouncement(`Guard moved to position ${to + 1} of ${guards.length}`)
  }
  const store = (guard: Guard) => {
    const index = editing?.index
    onChange(index === undefined ? [...guards, guard] : guards.with(index, guard))
    setEditing(undefined)
  }
  const add = !readOnly && (
    <Menu
      trigger={
        <Button size="small" icon={Plus}>
          Add guard
        </Button>
      }
      items={kinds.map(({ name }) => ({
        kind: 'item',
        label: labelOf(name),
        onSelect: () => setEditing({ index: undefined, guard: {}, kind: name }),
      }))}
    />
  )
  return (
    <Card title={heading} about={about} actions={add} flush={guards.length > 0}>
      {guards.length === 0 ? (
        <EmptyState icon={ShieldCheck} title={`No guards of ${heading.toLowerCase()}`}>
          Contents pass unchecked. Mask personal data with built-in patterns, or call a webhook.
        </EmptyState>
      ) : (
        <ol aria-label={`Guards of ${heading.toLowerCase()}`}>
          {guards.map((guard, index) => {
            const kind = kindOf(guard, names)
            return (
              <GuardItem
                key={index}
                guard={guard}
                kind={kind}
                index={index}
                count={guards.length}
                readOnly={readOnly}
                dragged={dragged === index}
                onDragStart={() => setDragged(index)}
                onDragOver={() => {
                  if (dragged === undefined || dragged === index) return
                  move(dragged, index)
                  setDragged(index)
                }}
                onDragEnd={() => setDragged(undefined)}
                onMove={(by) => move(index, index + by)}
                onEdit={() => setEditing({ index, guard, kind: kind ?? '' })}
                onRemove={() => onChange(guards.toSpliced(index, 1))}
              />
            )
          })}
        </ol>
      )}
      <span className="sr-only" role="status">
        {announcement}
      </span>
      {editing && (
        <GuardDialog
          {...editing}
          schema={schema}
          kinds={kinds}
          readOnly={readOnly}
          onStore={store}
          onClose={() => setEditing(undefined)}
        />
      )}
    </Card>
  )
}

type GuardItemProps = {
  readonly guard: Guard
  readonly kind: string | undefined
  readonly index: number
  readonly count: number
  readonly readOnly: boolean
  readonly dragged: boolean
  onDragStart(): void
  onDragOver(): void
  onDragEnd(): void
  onMove(by: number): void
  onEdit(): void
  onRemove(): void
}

function GuardItem(props: GuardItemProps) {
  const { guard, kind, index, count, readOnly, dragged } = props
  const name = typeof guard['name'] === 'string' ? guard['name'] : labelOf(kind ?? 'guard')
  const action = actionOf(guard, kind)
  const place = `guard ${index + 1}`
  return (
    <li
      draggable={!readOnly}
      onDragStart={props.onDragStart}
      onDragOver={(event) => {
        event.preventDefault()
        props.onDragOver()
      }}
      onDragEnd={props.onDragEnd}
      onDrop={(event) => event.preventDefault()}
      className={classNames(
        'flex items-center gap-2 border-t border-line px-4 py-2.5 sm:px-5',
        dragged && 'bg-accent-soft',
      )}
    >
      {!readOnly && <GripVertical className="size-4 shrink-0 cursor-grab text-ink-faint" aria-hidden />}
      <span className="w-5 shrink-0 text-center text-xs text-ink-faint tabular">{index + 1}</span>
      <div className="min-w-0 flex-1">
        <div className="flex min-w-0 items-center gap-2">
          <button
            type="button"
            onClick={props.onEdit}
            className="truncate text-sm font-medium hover:underline"
            dir="auto"
          >
            {name}
          </button>
          {action && (
            <Badge tone={action === 'reject' ? 'bad' : action === 'audit' ? 'info' : 'accent'}>
              {action}
            </Badge>
          )}
        </div>
        <p className="truncate font-mono text-xs text-ink-faint">{summaryOf(guard, kind)}</p>
      </div>
      {!readOnly && (
        <div className="flex shrink-0 items-center">
          <IconButton
            icon={ChevronUp}
            label={`Move ${place} up`}
            disabled={index === 0}
            onClick={() => props.onMove(-1)}
          />
          <IconButton
            icon={ChevronDown}
            label={`Move ${place} down`}
            disabled={index === count - 1}
            onClick={() => props.onMove(1)}
          />
          <IconButton
            icon={Pencil}
            label={`Edit ${place}`}
            className="max-sm:hidden"
            onClick={props.onEdit}
          />
          <IconButton icon={Trash2} tone="danger" label={`Remove ${place}`} onClick={props.onRemove} />
        </div>
      )}
    </li>
  )
}
