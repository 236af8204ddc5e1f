import type { LucideIcon } from 'lucide-react'
import type { ComponentProps } from 'react'
import { classNames } from '../class-names.ts'
import { Tooltip } from '../feedback/tooltip.tsx'

type IconButtonProps = ComponentProps<'button'> & {
  icon: LucideIcon
  label: string
  tone?: 'quiet' | 'danger'
}

/** A button with an icon alone. `label` is its accessible name and its tooltip. */
export function IconButton({ icon: Icon, label, tone = 'quiet', className, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <button
        type="button"
        aria-label={label}
        {...rest}
        className={classNames(
          'inline-grid size-8 shrink-0 place-items-center rounded-md text-ink-soft transition-colors hover:bg-hover',
          'disabled:opacity-50 disabled:cursor-not-allowed',
          tone === 'danger' ? 'hover:text-bad' : 'hover:text-ink',
          className,
        )}
      >
        <Icon className="size-4" aria-hidden />
      </button>
    </Tooltip>
  )
}
