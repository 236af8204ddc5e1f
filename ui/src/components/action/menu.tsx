import type { LucideIcon } from 'lucide-react'
import { DropdownMenu } from 'radix-ui'
import type { ReactNode } from 'react'
import { classNames } from '../class-names.ts'

export type MenuItem =
  | {
      readonly kind: 'item'
      readonly label: string
      readonly icon?: LucideIcon
      readonly danger?: boolean
      readonly disabled?: boolean
      onSelect(): void
    }
  | { readonly kind: 'separator' }
  /** Text that is not an action. */
  | { readonly kind: 'note'; readonly title: string; readonly lines: readonly string[] }

/** A menu below its trigger, which must accept a ref. */
export function Menu({
  trigger,
  items,
  align = 'end',
}: {
  trigger: ReactNode
  items: readonly MenuItem[]
  align?: 'start' | 'end'
}) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="fade z-50 min-w-44 rounded-lg border border-line bg-surface p-1 shadow-high"
        >
          {items.map((item, index) => {
            if (item.kind === 'separator')
              return <DropdownMenu.Separator key={index} className="my-1 h-px bg-line" />
            if (item.kind === 'note')
              return (
                <DropdownMenu.Label key={item.title} className="max-w-72 px-2.5 py-1.5 text-sm break-words">
                  <span className="block font-medium">{item.title}</span>
                  {item.lines.map((line) => (
                    <span key={line} className="mt-0.5 block text-xs text-ink-soft">
                      {line}
                    </span>
                  ))}
                </DropdownMenu.Label>
              )
            return (
              <DropdownMenu.Item
                key={item.label}
                disabled={item.disabled === true}
                onSelect={item.onSelect}
                className={classNames(
                  'flex cursor-default items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm outline-none select-none',
                  'data-[highlighted]:bg-hover data-[disabled]:opacity-50',
                  item.danger ? 'text-bad' : 'text-ink',
                )}
              >
                {item.icon && <item.icon className="size-4 shrink-0" aria-hidden />}
                {item.label}
              </DropdownMenu.Item>
            )
          })}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}
