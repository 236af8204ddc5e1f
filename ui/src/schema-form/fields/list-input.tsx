import { Plus } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../components/action/button.tsx'
import { fieldId, useFormContext } from '../form-context.ts'
import { Section } from '../frame/section.tsx'
import { blankValue } from '../model/blank.ts'
import { type FormNode, type NodeOf, readNode } from '../model/node.ts'
import { type FieldPath, withItemMoved } from '../model/value.ts'
import { JsonInput } from './json-input.tsx'
import { ListItem } from './list-item.tsx'
import type { InputProps } from './text-input.tsx'

const pageSize = 50
const emptyList: readonly unknown[] = []

/** Items of a list, in an order that can be changed by drag and by keyboard. */
export function ListInput(props: InputProps<NodeOf<'list'>>) {
  const { node, value, path, label, optional, required = false, bare } = props
  if (value !== undefined && !Array.isArray(value)) return <JsonInput {...props} />
  const items: readonly unknown[] = value ?? emptyList
  const content = <Items node={node} items={items} path={path} label={label} />
  if (bare) return content
  return (
    <Section
      label={label}
      description={node.description}
      schema={{}}
      value={value}
      path={path}
      optional={optional}
      required={required}
      count={items.length}
      blank={emptyList}
    >
      {content}
    </Section>
  )
}

function Items({
  node,
  items,
  path,
  label,
}: {
  node: NodeOf<'list'>
  items: readonly unknown[]
  path: FieldPath
  label: string
}) {
  const form = useFormContext()
  const { definitions, readOnly, set } = form
  const [shown, setShown] = useState(pageSize)
  const [keys, setKeys] = useState(() => items.map(nextKey))
  const [dragged, setDragged] = useState<number>()
  const [announcement, setAnnouncement] = useState('')
  const itemNode = readNode(node.item, definitions)
  const compact = isCompact(itemNode)
  // Items that were added elsewhere, by YAML or a merge, get keys at the end.
  const itemKeys = items.map((_, index) => keys[index] ?? index - 1_000_000)
  const change = (next: readonly unknown[], nextKeys: readonly number[]) => {
    setKeys([...nextKeys])
    set(path, next)
  }
  const move = (from: number, to: number) => {
    if (to < 0 || to >= items.length) return
    change(withItemMoved(items, from, to), withItemMoved(itemKeys, from, to))
    setAnnouncement(`${label} ${from + 1} moved to place ${to + 1} of ${items.length}`)
  }
  const add = () => {
    setShown(Math.max(shown, items.length + 1))
    change([...items, blankValue(node.item, definitions) ?? ''], [...itemKeys, nextKey()])
    const added = [...path, items.length]
    requestAnimationFrame(() => focusFirst(`${fieldId(form, added)}-item`))
  }
  return (
    <div className="min-w-0 py-2">
      <ol className="space-y-2">
        {items.slice(0, shown).map((item, index) => (
          <ListItem
            key={itemKeys[index]}
            id={`${fieldId(form, [...path, index])}-item`}
            schema={node.item}
            item={item}
            index={index}
            path={path}
            label={label}
            compact={compact}
            movable={items.length > 1 && !readOnly}
            dragged={dragged === index}
            onDrag={setDragged}
            onDrop={() => dragged !== undefined && move(dragged, index)}
            onMove={(to) => move(index, to)}
            onRemove={() => change(items.toSpliced(index, 1), itemKeys.toSpliced(index, 1))}
          />
        ))}
      </ol>
      <div className="mt-2 flex gap-2">
        {items.length > shown && (
          <Button size="small" onClick={() => setShown(shown + pageSize)}>
            Show more of {items.length}
          </Button>
        )}
        {!readOnly && (
          <Button size="small" icon={Plus} disabled={items.length >= node.maxItems} onClick={add}>
            Add item
          </Button>
        )}
      </div>
      <span className="sr-only" role="status">
        {announcement}
      </span>
    </div>
  )
}

/** Values that fit into one line. */
export function isCompact({ kind, secret }: FormNode): boolean {
  return !secret && (kind === 'text' || kind === 'number' || kind === 'choice' || kind === 'boolean')
}

let lastKey = 0

function nextKey(): number {
  lastKey += 1
  return lastKey
}

function focusFirst(id: string): void {
  document
    .getElementById(id)
    ?.querySelector<HTMLElement>('input, select, textarea, [contenteditable="true"], button[role="radio"]')
    ?.focus()
}
