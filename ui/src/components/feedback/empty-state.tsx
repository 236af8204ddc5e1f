import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'

/** Content of a page or list without items: the reason and the next step. */
export function EmptyState({
  icon: Icon,
  title,
  children,
  action,
}: {
  icon: LucideIcon
  title: string
  children?: ReactNode
  action?: ReactNode
}) {
  return (
    <div className="flex flex-col items-center gap-1 px-6 py-14 text-center">
      <span className="mb-3 grid size-11 place-items-center rounded-xl border border-line bg-sunken text-ink-faint">
        <Icon className="size-5" aria-hidden />
      </span>
      <h2 className="text-base">{title}</h2>
      {children && <div className="max-w-md text-sm text-ink-soft">{children}</div>}
      {action && <div className="mt-4 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  )
}
