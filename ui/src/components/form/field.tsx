import { type ReactNode, useId } from 'react'

type FieldProps = {
  readonly label: ReactNode
  readonly help?: ReactNode
  readonly error?: ReactNode
  readonly required?: boolean
  /** Attributes for the control: id and references to help and error. */
  children(control: {
    id: string
    'aria-describedby'?: string
    'aria-invalid'?: true
    required?: true
  }): ReactNode
}

/** Label, control, help and error of one input. */
export function Field({ label, help, error, required = false, children }: FieldProps) {
  const id = useId()
  const described = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        {label}
        {required && <span className="ml-1 font-normal text-ink-faint">required</span>}
      </label>
      {children({
        id,
        ...(described && { 'aria-describedby': described }),
        ...(error ? { 'aria-invalid': true as const } : {}),
        ...(required ? { required: true as const } : {}),
      })}
      {help && (
        <p id={`${id}-help`} className="mt-1 text-xs text-ink-faint">
          {help}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} role="alert" className="mt-1 text-xs text-bad">
          {error}
        </p>
      )}
    </div>
  )
}
