import { Plus, Trash2 } from 'lucide-react'
import { useId, useRef, useState } from 'react'
import { Button } from '../../components/action/button.tsx'
import { IconButton } from '../../components/action/icon-button.tsx'
import { Input } from '../../components/form/input.tsx'
import { fieldId, useFormContext } from '../form-context.ts'
import { Mistakes } from '../frame/field-row.tsx'
import { Section } from '../frame/section.tsx'
import { blankValue } from '../model/blank.ts'
import { type NodeOf, readNode } from '../model/node.ts'
import { type FieldPath, isObject } from '../model/value.ts'
import { isCompact } from './list-input.tsx'
import { NodeInput } from './node-input.tsx'
import type { InputProps } from './text-input.tsx'

const pageSize = 50
const emptyMap = {}

/** Entries of a map: names chosen by the user, with values of one form. */
export function MapInput(props: InputProps<NodeOf<'map'>>) {
  const { node, value, path, label, optional, required = false, bare } = props
  const entries = isObject(value) ? Object.entries(value) : []
  const content = <Entries node={node} entries={entries} path={path} label={label} />
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
      count={entries.length}
      blank={emptyMap}
    >
      {content}
    </Section>
  )
}

function Entries({
  node,
  entries,
  path,
  label,
}: {
  node: NodeOf<'map'>
  entries: readonly [string, unknown][]
  path: FieldPath
  label: string
}) {
  const form = useFormContext()
  const { definitions, readOnly, set } = form
  const [shown, setShown] = useState(pageSize)
  const compact = isCompact(readNode(node.value, definitions))
  const rename = (index: number, next: string): boolean => {
    if (entries.some(([name], other) => name === next && other !== index)) return false
    set(path, Object.fromEntries(entries.map(([name, item], other) => [other === index ? next : name, item])))
    return true
  }
  return (
    <div className="min-w-0 space-y-2 py-2">
      {entries.slice(0, shown).map(([name, item], index) => (
        <div
          key={index}
          className={compact ? 'flex flex-wrap items-start gap-2' : 'rounded-lg border border-line p-3'}
        >
          <div className={compact ? 'min-w-36 flex-1' : 'mb-2 flex items-start gap-2'}>
            <KeyInput
              id={`${fieldId(form, [...path, name])}-key`}
              name={name}
              label={`${label}: name ${index + 1}`}
              readOnly={readOnly}
              onRename={(next) => rename(index, next)}
            />
            {!compact && !readOnly && <Remove name={name} onClick={() => set([...path, name], undefined)} />}
          </div>
          <div className={compact ? 'min-w-44 flex-[2]' : 'min-w-0'}>
            <NodeInput
              schema={node.value}
              value={item}
              path={[...path, name]}
              label={name === '' ? `${label}: value ${index + 1}` : name}
              optional={false}
              bare
            />
            <Mistakes path={[...path, name]} />
          </div>
          {compact && !readOnly && <Remove name={name} onClick={() => set([...path, name], undefined)} />}
        </div>
      ))}
      <div className="flex gap-2">
        {entries.length > shown && (
          <Button size="small" onClick={() => setShown(shown + pageSize)}>
            Show more of {entries.length}
          </Button>
        )}
        {!readOnly && (
          <Button
            size="small"
            icon={Plus}
            disabled={entries.some(([name]) => name === '')}
            onClick={() => {
              setShown(Math.max(shown, entries.length + 1))
              set(path, Object.fromEntries([...entries, ['', blankValue(node.value, definitions) ?? '']]))
            }}
          >
            Add entry
          </Button>
        )}
      </div>
    </div>
  )
}

function Remove({ name, onClick }: { name: string; onClick(): void }) {
  return <IconButton icon={Trash2} label={`Remove ${name || 'the entry'}`} tone="danger" onClick={onClick} />
}

/** Name of an entry. A name that exists already is not taken over. */
function KeyInput({
  id,
  name,
  label,
  readOnly,
  onRename,
}: {
  id: string
  name: string
  label: string
  readOnly: boolean
  onRename(next: string): boolean
}) {
  const [draft, setDraft] = useState<string>()
  const taken = useRef(false)
  const errorId = useId()
  return (
    <div className="min-w-0 flex-1">
      <Input
        id={id}
        aria-label={label}
        aria-invalid={taken.current || undefined}
        aria-describedby={taken.current ? errorId : undefined}
        placeholder="Name"
        className="font-mono"
        readOnly={readOnly}
        value={draft ?? name}
        onChange={({ target }) => {
          taken.current = !onRename(target.value)
          setDraft(taken.current ? target.value : undefined)
        }}
      />
      {taken.current && draft !== undefined && (
        <p id={errorId} className="mt-1 text-xs text-bad">
          This name exists already.
        </p>
      )}
    </div>
  )
}
