import { useState } from 'react'
import { Input } from '../../components/form/input.tsx'
import { Select } from '../../components/form/select.tsx'
import { useFormContext } from '../form-context.ts'
import { useControl } from '../frame/field-row.tsx'
import type { NodeOf } from '../model/node.ts'
import { parseNumber } from './number-input.tsx'
import type { InputProps } from './text-input.tsx'

const referenceOption = '\u0000reference'
const numberOption = '\u0000number'

/** One of some values; or a number, or a reference to the environment, where the schema permits them. */
export function ChoiceInput(props: InputProps<NodeOf<'choice'>>) {
  const { node, value, path, label, optional, required, bare } = props
  const { readOnly, set } = useFormContext()
  const control = useControl(path, bare ? undefined : node.description, required)
  const isListed = value === undefined || node.values.includes(value)
  const [other, setOther] = useState<'number' | 'reference'>()
  const mode = isListed ? other : typeof value === 'number' ? 'number' : 'reference'
  const { defaultValue } = node
  const none = defaultValue === undefined ? (required ? 'Choose…' : 'Not set') : `${defaultValue} (default)`
  const options = [
    ...(value === undefined || (optional && !required) ? [{ value: '', label: none }] : []),
    ...node.values.map((item, index) => ({ value: String(index), label: String(item) })),
    ...(node.number ? [{ value: numberOption, label: 'Number…' }] : []),
    ...(node.acceptsReference ? [{ value: referenceOption, label: 'Environment variable…' }] : []),
  ]
  const choose = (next: string) => {
    setOther(next === referenceOption ? 'reference' : next === numberOption ? 'number' : undefined)
    if (next === referenceOption) set(path, '$')
    else if (next !== numberOption) set(path, next === '' ? undefined : node.values[Number(next)])
  }
  const selected = { number: numberOption, reference: referenceOption }
  return (
    <div className="flex flex-wrap gap-2">
      <Select
        {...control}
        {...(bare && { 'aria-label': label })}
        disabled={readOnly}
        className="max-w-72"
        value={mode ? selected[mode] : value === undefined ? '' : String(node.values.indexOf(value))}
        options={options}
        onChange={choose}
      />
      {mode && (
        <Input
          aria-label={mode === 'number' ? `${label}: number` : `${label}: environment variable`}
          readOnly={readOnly}
          className="max-w-48 font-mono"
          placeholder={mode === 'number' ? '1' : '$NAME'}
          value={value === undefined || isListed ? '' : String(value)}
          onChange={({ target }) => set(path, target.value === '' ? undefined : parseNumber(target.value))}
        />
      )}
    </div>
  )
}
