import { RotateCcw } from 'lucide-react'
import { Button } from '../../components/action/button.tsx'
import { Input } from '../../components/form/input.tsx'
import { Switch } from '../../components/form/switch.tsx'
import { useFormContext } from '../form-context.ts'
import { useControl } from '../frame/field-row.tsx'
import type { NodeOf } from '../model/node.ts'
import type { InputProps } from './text-input.tsx'

/** A switch that displays the default while nothing is set. */
export function BooleanInput(props: InputProps<NodeOf<'boolean'>>) {
  const { node, value, path, label, optional, required, bare } = props
  const { readOnly, set } = useFormContext()
  const control = useControl(path, bare ? undefined : node.description, required)
  const name = bare ? { 'aria-label': label } : {}
  if (typeof value === 'string') {
    return (
      <Input
        {...control}
        {...name}
        readOnly={readOnly}
        className="font-mono"
        value={value}
        onChange={({ target }) => set(path, target.value === '' && optional ? undefined : target.value)}
      />
    )
  }
  const { 'aria-required': _, ...attributes } = control
  const shown = value === undefined ? node.defaultValue === true : value === true
  return (
    <div className="flex min-h-8.5 items-center gap-3">
      <Switch
        {...attributes}
        {...name}
        disabled={readOnly}
        checked={shown}
        onChange={(next) => set(path, next)}
      />
      <span className="text-xs text-ink-faint">
        {shown ? 'On' : 'Off'}
        {value === undefined && ' (default)'}
      </span>
      {value !== undefined && optional && !required && !readOnly && (
        <Button size="small" tone="quiet" icon={RotateCcw} onClick={() => set(path, undefined)}>
          Default
        </Button>
      )}
    </div>
  )
}
