import type { ReactNode } from 'react'
import { classNames } from '../class-names.ts'

type CardProps = {
  readonly title?: ReactNode
  readonly about?: ReactNode
  readonly actions?: ReactNode
  /** Without inner space, for tables and plots. */
  readonly flush?: boolean
  readonly className?: string
  readonly children: ReactNode
}

/** A bordered section of a page. */
export function Card({ title, about, actions, flush = false, className, children }: CardProps) {
  return (
    <section
      className={classNames('min-w-0 rounded-xl border border-line bg-surface shadow-card', className)}
    >
      {(title || actions) && (
        <header className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2 px-4 pt-3.5 pb-2 sm:px-5">
          <div className="min-w-0">
            <h2 className="text-sm">{title}</h2>
            {about && <p className="text-xs text-ink-faint">{about}</p>}
          </div>
          {actions && <div className="flex items-center gap-2">{actions}</div>}
        </header>
      )}
      <div className={flush ? 'overflow-hidden rounded-b-xl' : 'px-4 pt-2 pb-4 sm:px-5 sm:pb-5'}>
        {children}
      </div>
    </section>
  )
}
