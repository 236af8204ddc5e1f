import { Dialog } from 'radix-ui'
import type { ReactNode } from 'react'

/** The sidebar of narrow windows: a panel over the page. */
export function Drawer({
  open,
  onOpenChange,
  children,
}: {
  open: boolean
  onOpenChange(open: boolean): void
  children: ReactNode
}) {
  return (
    <Dialog.Root open={open} onOpenChange={onOpenChange}>
      <Dialog.Portal>
        <Dialog.Overlay className="fade fixed inset-0 z-40 bg-scrim" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fade fixed inset-y-0 left-0 z-50 w-72 max-w-[85vw] border-r border-line shadow-high outline-none"
        >
          <Dialog.Title className="sr-only">Navigation</Dialog.Title>
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
