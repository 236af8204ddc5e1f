import type { ComponentProps } from 'react'
import { classNames } from '../class-names.ts'
import { inputClass } from './input.tsx'

type SelectProps = Omit<ComponentProps<'select'>, 'onChange'> & {
  readonly options: readonly { readonly value: string; readonly label: string }[]
  onChange(value: string): void
}

/** A choice of one value: the browser's own control, which works everywhere. */
export function Select({ options, onChange, className, ...rest }: SelectProps) {
  return (
    <select
      {...rest}
      onChange={(event) => onChange(event.target.value)}
      className={classNames(inputClass, 'pr-8', className)}
    >
      {options.map(({ value, label }) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  )
}
