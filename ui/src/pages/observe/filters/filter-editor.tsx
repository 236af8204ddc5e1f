import { type FormEvent, useId, useState } from 'react'
import { Button } from '../../../components/action/button.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input, inputClass } from '../../../components/form/input.tsx'
import { Select } from '../../../components/form/select.tsx'
import { type FilterField, filterField, filterFields } from './fields.ts'
import type { Filter } from './url-filters.ts'

type FilterEditorProps = {
  readonly initial: Filter | undefined
  readonly fields?: readonly FilterField[]
  /** Recent values by field. */
  readonly options: Readonly<Record<string, readonly (string | number)[]>>
  onApply(filter: Filter): void
}

type Operator = 'is' | 'contains' | 'none' | 'min' | 'max'

const operators: Record<FilterField['kind'], readonly { value: Operator; label: string }[]> = {
  text: [
    { value: 'is', label: 'is one of' },
    { value: 'contains', label: 'contains' },
    { value: 'none', label: 'has no value' },
  ],
  number: [
    { value: 'is', label: 'is one of' },
    { value: 'min', label: 'at least' },
    { value: 'max', label: 'at most' },
    { value: 'none', label: 'has no value' },
  ],
  flag: [{ value: 'is', label: 'is' }],
}

/** Form of one condition. */
export function FilterEditor({ initial, fields = filterFields, options, onApply }: FilterEditorProps) {
  const [name, setName] = useState(initial?.field.name ?? fields[0]?.name ?? 'status')
  const [operator, setOperator] = useState<Operator>(initial ? operatorOf(initial) : 'is')
  const [text, setText] = useState(initial ? textOf(initial) : '')
  const listId = useId()
  const field = filterField(name) ?? filterFields[0]
  if (field === undefined) return null
  const filter = filterOf(field, operator, text)
  const known = [...new Set([...(field.values ?? []), ...(options[name] ?? []).map(String)])]
  const apply = (event: FormEvent) => {
    event.preventDefault()
    if (filter) onApply(filter)
  }
  return (
    <form onSubmit={apply} className="space-y-3">
      <Field label="Field">
        {(control) => (
          <select
            {...control}
            className={inputClass}
            value={name}
            onChange={(event) => {
              setName(event.target.value)
              setOperator('is')
              setText('')
            }}
          >
            {[...Map.groupBy(fields, ({ group }) => group)].map(([group, members]) => (
              <optgroup key={group} label={group}>
                {members.map((one) => (
                  <option key={one.name} value={one.name}>
                    {one.label}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
        )}
      </Field>
      <Field label="Condition">
        {(control) => (
          <Select
            {...control}
            value={operator}
            options={operators[field.kind]}
            onChange={(value) => setOperator(value as Operator)}
          />
        )}
      </Field>
      {field.kind === 'flag' ? (
        <Field label="Value">
          {(control) => (
            <Select
              {...control}
              value={text || 'true'}
              onChange={setText}
              options={[
                { value: 'true', label: 'yes' },
                { value: 'false', label: 'no' },
              ]}
            />
          )}
        </Field>
      ) : (
        operator !== 'none' && (
          <Field
            label={field.unit === undefined ? 'Value' : `Value in ${field.unit}`}
            help={operator === 'is' ? 'Separate several values with commas.' : undefined}
          >
            {(control) => (
              <>
                <Input
                  {...control}
                  autoFocus
                  list={listId}
                  value={text}
                  inputMode={field.kind === 'number' ? 'decimal' : 'text'}
                  onChange={(event) => setText(event.target.value)}
                />
                <datalist id={listId}>
                  {known.map((value) => (
                    <option key={value} value={value} />
                  ))}
                </datalist>
              </>
            )}
          </Field>
        )
      )}
      <div className="flex justify-end">
        <Button type="submit" tone="primary" size="small" disabled={filter === undefined}>
          Apply
        </Button>
      </div>
    </form>
  )
}

function filterOf(field: FilterField, operator: Operator, text: string): Filter | undefined {
  if (field.kind === 'flag') return { kind: 'flag', field, value: text !== 'false' }
  if (operator === 'none') return { kind: 'values', field, values: [''] }
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  if (operator === 'contains') return { kind: 'contains', field, text: trimmed }
  const parts = trimmed.split(',').map((part) => part.trim())
  const values = parts.filter((part) => part !== '')
  if (field.kind === 'number' && values.some((value) => !Number.isFinite(Number(value)))) return undefined
  if (operator === 'is') return { kind: 'values', field, values }
  return { kind: 'range', field, [operator]: Number(values[0]) }
}

function operatorOf(filter: Filter): Operator {
  if (filter.kind === 'contains') return 'contains'
  if (filter.kind === 'range') return filter.min === undefined ? 'max' : 'min'
  return filter.kind === 'values' && filter.values[0] === '' ? 'none' : 'is'
}

function textOf(filter: Filter): string {
  switch (filter.kind) {
    case 'values':
      return filter.values.join(', ')
    case 'contains':
      return filter.text
    case 'range':
      return String(filter.min ?? filter.max ?? '')
    case 'flag':
      return String(filter.value)
  }
}
