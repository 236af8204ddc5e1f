import { Popover as Radix } from 'radix-ui'
import type { ReactNode } from 'react'

type PopoverProps = {
  readonly open: boolean
  onOpenChange(open: boolean): void
  /** Must accept a ref. */
  readonly trigger: ReactNode
  /** Accessible name of the content. */
  readonly label: string
  readonly align?: 'start' | 'end'
  readonly children: ReactNode
}

/** Content below its trigger, without a change of the page. Escape and a click outside close it. */
export function Popover({ open, onOpenChange, trigger, label, align = 'start', children }: PopoverProps) {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          aria-label={label}
          align={align}
          sideOffset={6}
          collisionPadding={12}
          className="fade z-50 w-80 max-w-[calc(100vw-1.5rem)] rounded-lg border border-line bg-surface p-4 shadow-high outline-none"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
