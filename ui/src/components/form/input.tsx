import type { ComponentProps } from 'react'
import { classNames } from '../class-names.ts'

/** Look of all one-line inputs. */
export const inputClass =
  'block w-full min-w-0 rounded-md border border-line-strong bg-surface px-2.5 h-8.5 text-sm text-ink shadow-card ' +
  'aria-invalid:border-bad disabled:bg-sunken disabled:text-ink-soft [&[readonly]]:bg-sunken'

export function Input({ className, ...rest }: ComponentProps<'input'>) {
  return <input autoComplete="off" {...rest} className={classNames(inputClass, className)} />
}

export function TextArea({ className, ...rest }: ComponentProps<'textarea'>) {
  return (
    <textarea
      rows={4}
      {...rest}
      className={classNames(inputClass, 'h-auto py-2 leading-relaxed', className)}
    />
  )
}
