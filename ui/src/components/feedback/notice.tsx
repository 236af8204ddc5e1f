import { CircleAlert, CircleCheck, Info, type LucideIcon, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { classNames } from '../class-names.ts'

type NoticeTone = 'info' | 'good' | 'warn' | 'bad'

const looks: Record<NoticeTone, { icon: LucideIcon; box: string; mark: string }> = {
  info: { icon: Info, box: 'bg-info-soft', mark: 'text-info' },
  good: { icon: CircleCheck, box: 'bg-good-soft', mark: 'text-good' },
  warn: { icon: TriangleAlert, box: 'bg-warn-soft', mark: 'text-warn' },
  bad: { icon: CircleAlert, box: 'bg-bad-soft', mark: 'text-bad' },
}

/** A message in the page, with an optional action. `bad` is announced at once. */
export function Notice({
  tone = 'info',
  title,
  action,
  children,
}: {
  tone?: NoticeTone
  title: ReactNode
  action?: ReactNode
  children?: ReactNode
}) {
  const { icon: Icon, box, mark } = looks[tone]
  return (
    <div
      role={tone === 'bad' ? 'alert' : 'status'}
      className={classNames('flex gap-3 rounded-lg px-4 py-3 text-sm', box)}
    >
      <Icon className={classNames('mt-0.5 size-4 shrink-0', mark)} aria-hidden />
      <div className="min-w-0 flex-1">
        <div className="font-medium break-words">{title}</div>
        {children && <div className="mt-0.5 break-words text-ink-soft">{children}</div>}
      </div>
      {action}
    </div>
  )
}
