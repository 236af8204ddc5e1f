import { Trash2 } from 'lucide-react'
import { IconButton } from '../../components/action/icon-button.tsx'
import { useFormContext } from '../form-context.ts'
import { Mistakes } from '../frame/field-row.tsx'
import type { NodeOf } from '../model/node.ts'
import { type FieldPath, isObject } from '../model/value.ts'

/** Members that the schema does not have: retained, and displayed so that they can be removed. */
export function UnknownMembers({
  node,
  value,
  path,
}: {
  node: NodeOf<'object'>
  value: unknown
  path: FieldPath
}) {
  const { readOnly, set } = useFormContext()
  if (!isObject(value)) return null
  const known = new Set(node.fields.map(({ name }) => name))
  const unknown = Object.entries(value).filter(([name, member]) => !known.has(name) && member !== undefined)
  if (unknown.length === 0) return null
  return (
    <div className="py-3">
      <p className="text-xs text-ink-faint">Further members, which this form retains as they are:</p>
      <ul className="mt-1 space-y-1">
        {unknown.map(([name, member]) => (
          <li key={name} className="rounded-md bg-sunken py-1 pr-1 pl-2.5 text-xs">
            <span className="flex items-center gap-2">
              <code className="min-w-0 flex-1 truncate">
                {name}: {JSON.stringify(member)}
              </code>
              {!readOnly && (
                <IconButton
                  icon={Trash2}
                  label={`Remove ${name}`}
                  tone="danger"
                  onClick={() => set([...path, name], undefined)}
                />
              )}
            </span>
            <Mistakes path={[...path, name]} />
          </li>
        ))}
      </ul>
    </div>
  )
}
