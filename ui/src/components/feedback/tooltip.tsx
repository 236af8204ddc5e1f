import { Tooltip as Radix } from 'radix-ui'
import type { ReactNode } from 'react'

/** Displays a text on hover and focus of its child, which must accept a ref. */
export function Tooltip({ text, children }: { text: ReactNode; children: ReactNode }) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          sideOffset={6}
          collisionPadding={8}
          className="fade z-60 max-w-80 rounded-md bg-ink px-2.5 py-1.5 text-xs text-canvas shadow-high"
        >
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

export const TooltipProvider = Radix.Provider
