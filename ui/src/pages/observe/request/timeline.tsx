import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { classNames } from '../../../components/class-names.ts'

export type StepTone = 'neutral' | 'good' | 'warn' | 'bad'

const marks: Record<StepTone, string> = {
  neutral: 'border-line bg-surface text-ink-faint',
  good: 'border-transparent bg-good-soft text-good',
  warn: 'border-transparent bg-warn-soft text-warn',
  bad: 'border-transparent bg-bad-soft text-bad',
}

/** Steps of a request in their order. */
export function Timeline({ children }: { children: ReactNode }) {
  return <ol className="relative">{children}</ol>
}

/** One step: its result, and the figures behind it. */
export function Step({
  icon: Icon,
  title,
  result,
  tone = 'neutral',
  children,
}: {
  icon: LucideIcon
  title: ReactNode
  result?: ReactNode
  tone?: StepTone
  children?: ReactNode
}) {
  return (
    <li className="group relative flex gap-3.5 pb-6 last:pb-0">
      <span aria-hidden className="absolute top-8 bottom-0 left-4 w-px bg-line group-last:hidden" />
      <span
        className={classNames('z-1 grid size-8 shrink-0 place-items-center rounded-full border', marks[tone])}
      >
        <Icon className="size-4" aria-hidden />
      </span>
      <div className="min-w-0 flex-1 pt-1">
        <div className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5">
          <h3 className="text-sm">{title}</h3>
          {result && <span className="min-w-0 text-sm break-words text-ink-soft">{result}</span>}
        </div>
        {children && <div className="mt-2">{children}</div>}
      </div>
    </li>
  )
}
