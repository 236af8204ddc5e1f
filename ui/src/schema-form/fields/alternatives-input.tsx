import { useRef } from 'react'
import { Segmented } from '../../components/form/segmented.tsx'
import { useFormContext } from '../form-context.ts'
import { FieldRow } from '../frame/field-row.tsx'
import { matchOption, optionLabels } from '../model/alternatives.ts'
import { blankValue } from '../model/blank.ts'
import type { NodeOf } from '../model/node.ts'
import type { FieldPath } from '../model/value.ts'
import { JsonInput } from './json-input.tsx'
import { NodeInput } from './node-input.tsx'

type AlternativesInputProps = {
  readonly node: NodeOf<'alternatives'>
  readonly value: unknown
  readonly path: FieldPath
  readonly label: string
  readonly optional: boolean
  readonly required: boolean
  readonly bare: boolean
}

/** A value of one of several forms, such as a text or an object. */
export function AlternativesInput(props: AlternativesInputProps) {
  const { node, value, path, label, optional, required, bare } = props
  const { definitions, readOnly, set } = useFormContext()
  const drafts = useRef(new Map<number, unknown>())
  const { options } = node
  const index = matchOption(value, options, definitions)
  const option = options[index]
  const labels = optionLabels(options, definitions)
  const choose = (next: number) => {
    const target = options[next]
    if (target === undefined || next === index) return
    if (value !== undefined && index >= 0) drafts.current.set(index, value)
    set(path, drafts.current.get(next) ?? blankValue(target, definitions))
  }
  const control = (
    <div className="min-w-0 space-y-2">
      <div className="flex flex-wrap items-center gap-2">
        {!readOnly && (
          <Segmented
            label={`Form of ${label}`}
            value={String(index)}
            options={labels.map((text, number) => ({ value: String(number), label: text }))}
            onChange={(next) => choose(Number(next))}
          />
        )}
      </div>
      {option === undefined ? (
        <JsonInput node={node} value={value} path={path} optional={optional} label={label} />
      ) : (
        <NodeInput schema={option} value={value} path={path} label={label} optional={optional} bare />
      )}
    </div>
  )
  if (bare) return control
  return (
    <FieldRow label={label} path={path} required={required} description={node.description} group>
      {control}
    </FieldRow>
  )
}
