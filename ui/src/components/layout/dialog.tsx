import { X } from 'lucide-react'
import { Dialog as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { classNames } from '../class-names.ts'

type DialogProps = {
  readonly open: boolean
  onOpenChange(open: boolean): void
  readonly title: ReactNode
  readonly about?: ReactNode
  /** Buttons, primary last. */
  readonly footer?: ReactNode
  readonly width?: 'narrow' | 'medium' | 'wide'
  /** `side`: a panel at the right edge, for details and long forms. */
  readonly place?: 'center' | 'side'
  readonly children?: ReactNode
}

const widths = { narrow: 'max-w-md', medium: 'max-w-2xl', wide: 'max-w-5xl' }

/** A modal dialog. Escape and the close button end it; focus returns to its trigger. */
export function Dialog({
  open,
  onOpenChange,
  title,
  about,
  footer,
  width = 'medium',
  place = 'center',
  children,
}: DialogProps) {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fade fixed inset-0 z-40 bg-scrim" />
        <Radix.Content
          {...(about ? {} : { 'aria-describedby': undefined })}
          className={classNames(
            'enter fixed z-50 flex flex-col border-line bg-surface shadow-high outline-none',
            place === 'center'
              ? 'inset-x-3 top-[6dvh] mx-auto max-h-[88dvh] rounded-xl border'
              : 'inset-y-0 right-0 left-auto h-dvh w-full border-l sm:w-[calc(100%-3rem)]',
            widths[width],
          )}
        >
          <header className="flex items-start gap-3 border-b border-line px-5 py-4">
            <div className="min-w-0 flex-1">
              <Radix.Title className="text-lg break-words">{title}</Radix.Title>
              {about && (
                <Radix.Description className="mt-0.5 text-sm text-ink-soft">{about}</Radix.Description>
              )}
            </div>
            <Radix.Close
              aria-label="Close"
              className="rounded-md p-1.5 text-ink-faint hover:bg-hover hover:text-ink"
            >
              <X className="size-4" aria-hidden />
            </Radix.Close>
          </header>
          {children && <div className="min-h-0 flex-1 overflow-y-auto px-5 py-4">{children}</div>}
          {footer && (
            <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">
              {footer}
            </footer>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
