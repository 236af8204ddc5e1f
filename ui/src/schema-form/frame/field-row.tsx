import type { ReactNode } from 'react'
import { classNames } from '../../components/class-names.ts'
import { fieldId, useFormContext } from '../form-context.ts'
import type { FieldPath } from '../model/value.ts'
import { Prose } from './prose.tsx'

type FieldRowProps = {
  readonly label: ReactNode
  readonly path: FieldPath
  readonly required?: boolean
  readonly description?: string | undefined
  /** The control has no single input: the label names a group. */
  readonly group?: boolean
  readonly children: ReactNode
}

/** Attributes of the input in a row: id, and references to description and mistake. */
export type ControlAttributes = {
  readonly id: string
  readonly 'aria-describedby'?: string
  readonly 'aria-invalid'?: true
  readonly 'aria-required'?: true
}

/** Label and documentation at the left, control and mistake at the right; one below the other if narrow. */
export function FieldRow({ label, path, required, description, group, children }: FieldRowProps) {
  const id = fieldId(useFormContext(), path)
  const Label = group ? 'span' : 'label'
  return (
    <div
      {...(group ? { role: 'group', 'aria-labelledby': `${id}-label` } : {})}
      className="grid grid-cols-1 min-w-0 gap-x-8 gap-y-1.5 py-3 @3xl:grid-cols-[minmax(0,5fr)_minmax(0,7fr)]"
    >
      <div className="min-w-0">
        <Label
          {...(group ? {} : { htmlFor: id })}
          id={`${id}-label`}
          className="block text-sm font-medium break-words"
        >
          {label}
          {required && <span className="ml-1.5 text-xs font-normal text-ink-faint">required</span>}
        </Label>
        {description && (
          <p id={`${id}-help`} className="mt-0.5 max-w-prose text-xs text-ink-faint">
            <Prose text={description} />
          </p>
        )}
      </div>
      <div className="min-w-0">
        {children}
        <Mistakes path={path} />
      </div>
    </div>
  )
}

export function Mistakes({ path, className }: { path: FieldPath; className?: string }) {
  const form = useFormContext()
  const messages = form.mistakesAt(path)
  if (messages.length === 0) return null
  return (
    <p
      id={`${fieldId(form, path)}-error`}
      className={classNames('mt-1 text-xs break-words text-bad', className)}
    >
      {messages.join('; ')}
    </p>
  )
}

/** Attributes that connect an input with its label, description and mistakes. */
export function useControl(
  path: FieldPath,
  description: string | undefined,
  required = false,
): ControlAttributes {
  const form = useFormContext()
  const id = fieldId(form, path)
  const invalid = form.mistakesAt(path).length > 0
  const described = [description && `${id}-help`, invalid && `${id}-error`].filter(Boolean).join(' ')
  return {
    id,
    ...(described && { 'aria-describedby': described }),
    ...(invalid && { 'aria-invalid': true as const }),
    ...(required && { 'aria-required': true as const }),
  }
}
