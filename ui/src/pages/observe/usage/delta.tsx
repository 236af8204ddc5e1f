import { TrendingDown, TrendingUp } from 'lucide-react'
import { classNames } from '../../../components/class-names.ts'
import { formatPercent } from '../../../format/number.ts'

/** Change of a figure. Colour has a meaning only where less is better. */
export function Delta({
  current,
  previous,
  better,
}: {
  current: number | null
  previous: number | null
  better: 'less' | 'neither'
}) {
  if (current === null || previous === null) return <span className="text-ink-faint">no comparison</span>
  if (previous === 0)
    return <span className="text-ink-faint">{current === 0 ? 'unchanged' : 'none before'}</span>
  const change = current / previous - 1
  if (Math.abs(change) < 0.005) return <span className="text-ink-faint">unchanged</span>
  const Icon = change > 0 ? TrendingUp : TrendingDown
  const tone = better === 'neither' ? 'text-ink-soft' : change > 0 ? 'text-bad' : 'text-good'
  return (
    <span className={classNames('inline-flex items-center gap-1 tabular', tone)}>
      <Icon className="size-3.5" aria-hidden />
      {change > 0 ? '+' : '−'}
      {Math.abs(change) > 9.99 ? `×${Math.round(change + 1)}` : formatPercent(Math.abs(change))}
    </span>
  )
}
