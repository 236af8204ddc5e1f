import type { BudgetState } from '../../../api/budgets.ts'
import { formatMoney } from '../../../format/money.ts'
import { formatNumber, formatPercent } from '../../../format/number.ts'
import { formatAgo } from '../../../format/time.ts'

/** Used part of a budget in its current period. */
export function BudgetMeter({ budget: { budget, limit, usage, window, action } }: { budget: BudgetState }) {
  const amount = (text: string) =>
    limit.unit === 'USD' ? formatMoney(Number(text)) : `${formatNumber(Number(text))} tokens`
  const share = Math.min(1, usage.share)
  const tone = usage.exceeded ? 'bg-bad' : share >= 0.8 ? 'bg-warn' : 'bg-accent'
  return (
    <div className="min-w-0">
      <div className="flex items-baseline justify-between gap-2 text-sm">
        <span className="truncate font-medium">{budget}</span>
        <span className="tabular text-ink-soft">{formatPercent(usage.share)}</span>
      </div>
      <div aria-hidden className="mt-1.5 h-2 overflow-hidden rounded-full bg-hover">
        <div className={`h-full rounded-full ${tone}`} style={{ width: `${share * 100}%` }} />
      </div>
      <p className="mt-1.5 text-xs text-ink-soft tabular">
        {amount(usage.used)} of {amount(limit.amount)}, resets {formatAgo(window.end)}
        {action === 'audit' && ', reports only'}
      </p>
    </div>
  )
}
