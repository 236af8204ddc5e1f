import { useState } from 'react'
import { Input } from '../../components/form/input.tsx'
import { useFormContext } from '../form-context.ts'
import { useControl } from '../frame/field-row.tsx'
import type { NodeOf } from '../model/node.ts'
import type { InputProps } from './text-input.tsx'

/** A number, or a reference to the environment where the schema permits one. */
export function NumberInput(props: InputProps<NodeOf<'number'>>) {
  const { node, value, path, label, optional, required, bare } = props
  const { readOnly, set } = useFormContext()
  const control = useControl(path, bare ? undefined : node.description, required)
  const [text, setText] = useState(() => textOf(value))
  // A value from elsewhere replaces the text; the text of the user is retained while it means the value.
  const shown = Object.is(parseNumber(text), value ?? '') ? text : textOf(value)
  const { minimum, maximum } = node
  return (
    <Input
      {...control}
      {...(bare && { 'aria-label': label })}
      inputMode={node.integer ? 'numeric' : 'decimal'}
      className="max-w-56 tabular"
      readOnly={readOnly}
      value={shown}
      placeholder={node.placeholder ?? rangeText(minimum, maximum)}
      onChange={(event) => {
        const next = event.target.value
        setText(next)
        set(path, next.trim() === '' && optional ? undefined : parseNumber(next))
      }}
    />
  )
}

/** The number of a text. Other texts are the value themselves, for a reference or a mistake. */
export function parseNumber(text: string): number | string {
  const trimmed = text.trim()
  if (!/^-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/.test(trimmed)) return trimmed
  const number = Number(trimmed)
  // A number that JSON cannot represent exactly stays a text, so that no digit is lost.
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? trimmed : number
}

function textOf(value: unknown): string {
  return value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function rangeText(minimum: number | undefined, maximum: number | undefined): string | undefined {
  if (minimum === undefined && maximum === undefined) return undefined
  if (maximum === undefined) return `${minimum} or more`
  return minimum === undefined ? `up to ${maximum}` : `${minimum} to ${maximum}`
}
