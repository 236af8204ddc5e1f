import { useId, useRef } from 'react'
import { Segmented } from '../../components/form/segmented.tsx'
import { Select } from '../../components/form/select.tsx'
import { useFormContext } from '../form-context.ts'
import { blankValue } from '../model/blank.ts'
import { labelOf } from '../model/label.ts'
import type { ObjectField } from '../model/node.ts'
import { type FieldPath, memberOf, withMember } from '../model/value.ts'
import { NodeInput } from './node-input.tsx'

/** More variants than this are a select. */
const maxTabs = 5

/** A choice of one field of several, and the input of the chosen one. */
export function OneOfInput({
  variants,
  value,
  path,
}: {
  variants: readonly ObjectField[]
  value: unknown
  path: FieldPath
}) {
  const { definitions, readOnly, set } = useFormContext()
  const id = useId()
  const drafts = useRef(new Map<string, unknown>())
  const present = variants.filter(({ name }) => memberOf(value, name) !== undefined)
  const chosen = present[0]
  const choose = (name: string) => {
    const variant = variants.find((other) => other.name === name)
    if (variant === undefined || name === chosen?.name) return
    for (const other of present) drafts.current.set(other.name, memberOf(value, other.name))
    const blank = blankValue(variant.schema, definitions) ?? ''
    const cleared = present.reduce<unknown>(
      (object, other) => withMember(object, other.name, undefined),
      value,
    )
    set(path, withMember(cleared, name, drafts.current.get(name) ?? blank))
  }
  const names = variants.map(({ name }) => ({ value: name, label: labelOf(name) }))
  return (
    <div className="py-3">
      <div className="grid grid-cols-1 gap-x-8 gap-y-1.5 @3xl:grid-cols-[minmax(0,5fr)_minmax(0,7fr)]">
        <div>
          <label htmlFor={id} className="block text-sm font-medium">
            Variant <span className="ml-1 text-xs font-normal text-ink-faint">exactly one</span>
          </label>
        </div>
        <div className="min-w-0 overflow-x-auto">
          {names.length <= maxTabs && !readOnly ? (
            <Segmented label="Variant" value={chosen?.name ?? ''} options={names} onChange={choose} />
          ) : (
            <Select
              id={id}
              aria-label="Variant"
              disabled={readOnly}
              value={chosen?.name ?? ''}
              options={chosen ? names : [{ value: '', label: 'Choose…' }, ...names]}
              onChange={choose}
            />
          )}
        </div>
      </div>
      {present.map((variant) => (
        <div key={variant.name} className="mt-1">
          <NodeInput
            schema={variant.schema}
            value={memberOf(value, variant.name)}
            path={[...path, variant.name]}
            label={labelOf(variant.name)}
            optional={present.length > 1}
            required
          />
        </div>
      ))}
    </div>
  )
}
