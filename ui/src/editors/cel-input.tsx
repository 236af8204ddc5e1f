import type { ComponentProps } from 'react'
import { TextArea } from '../components/form/input.tsx'

type CelInputProps = {
  readonly control: Pick<
    ComponentProps<'textarea'>,
    'id' | 'aria-label' | 'aria-describedby' | 'aria-invalid' | 'aria-required'
  >
  readonly value: string
  /** Variables in scope; all if undefined. */
  readonly roots?: readonly string[] | undefined
  readonly placeholder?: string | undefined
  readonly readOnly?: boolean
  onChange(value: string): void
}

/** A CEL expression. */
export default function CelInput({ control, value, placeholder, readOnly, onChange }: CelInputProps) {
  return (
    <TextArea
      {...control}
      rows={2}
      className="font-mono"
      spellCheck={false}
      readOnly={readOnly}
      value={value}
      placeholder={placeholder}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
