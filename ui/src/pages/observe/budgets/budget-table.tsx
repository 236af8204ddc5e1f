import { Link } from 'wouter'
import type { BudgetState } from '../../../api/budgets.ts'
import { type Column, Table } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatCompact, formatPercent } from '../../../format/number.ts'
import { formatAgo, formatDateTime } from '../../../format/time.ts'
import { Meter } from '../meter.tsx'
import { linksOf } from './budget-links.ts'
import { forecastOf } from './forecast.ts'

/** State of budgets by value. */
export function BudgetTable({
  budgets,
  now,
  busy,
}: {
  budgets: readonly BudgetState[]
  /** Milliseconds since the epoch. */
  now: number
  busy: boolean
}) {
  return (
    <Table
      label="Budgets"
      rows={budgets}
      columns={columnsAt(now)}
      keyOf={({ place, budget, value, apiKeyId = '' }) => [place, budget, value, apiKeyId].join('\n')}
      busy={busy}
    />
  )
}

function columnsAt(now: number): readonly Column<BudgetState>[] {
  return [
    {
      id: 'budget',
      title: 'Budget',
      className: 'min-w-36 max-w-72',
      render: (state) => <BudgetName state={state} />,
    },
    {
      id: 'share',
      title: 'Used',
      className: 'w-56 min-w-36',
      render: ({ budget, usage, limit }) => (
        <div className="flex items-center gap-2.5">
          <Meter
            label={`Used of ${budget}`}
            used={Number(usage.used) / Number(limit.amount)}
            reserved={Number(usage.reserved) / Number(limit.amount)}
          />
          <span className="w-11 text-right text-xs tabular">{formatPercent(usage.share)}</span>
        </div>
      ),
    },
    {
      id: 'amount',
      title: 'Amount',
      numeric: true,
      className: 'whitespace-nowrap',
      render: ({ usage, limit }) => (
        <span>
          {amount(usage.used, limit.unit)}{' '}
          <span className="text-ink-faint">of {amount(limit.amount, limit.unit)}</span>
        </span>
      ),
    },
    {
      id: 'state',
      title: 'State',
      from: 'sm',
      render: (state) => <StateBadge state={state} />,
    },
    {
      id: 'forecast',
      title: 'Forecast',
      from: 'lg',
      className: 'whitespace-nowrap',
      render: (state) => <ForecastText state={state} now={now} />,
    },
    {
      id: 'reset',
      title: 'Resets',
      from: 'md',
      className: 'whitespace-nowrap',
      render: ({ window }) => <span title={formatDateTime(window.end)}>{formatAgo(window.end, now)}</span>,
    },
    {
      id: 'links',
      title: 'Details',
      from: 'md',
      render: (state) => {
        const { usage, refused } = linksOf(state)
        return (
          <span className="flex gap-3 whitespace-nowrap text-accent">
            <Link href={usage} className="hover:underline">
              Usage
            </Link>
            <Link href={refused} className="hover:underline">
              Refused
            </Link>
          </span>
        )
      },
    },
  ]
}

function BudgetName({ state }: { state: BudgetState }) {
  const { budget, place, key, value, apiKeyName, apiKeyId } = state
  const { key: keyPage } = linksOf(state)
  return (
    <div className="min-w-0">
      <div className="truncate font-medium">
        {budget}
        {value !== '' && <span className="font-normal"> · {value}</span>}
      </div>
      <div className="truncate text-xs text-ink-faint">
        {keyPage === undefined ? (
          <>
            {place}
            {key !== undefined && <code> by {key}</code>}
          </>
        ) : (
          <Link href={keyPage} className="text-accent hover:underline">
            key {apiKeyName ?? apiKeyId}
          </Link>
        )}
      </div>
    </div>
  )
}

const near = 0.8

function StateBadge({ state: { usage, action } }: { state: BudgetState }) {
  if (usage.exceeded)
    return <Badge tone="bad">{action === 'audit' ? 'exceeded, audit only' : 'refuses requests'}</Badge>
  if (usage.share >= near) return <Badge tone="warn">near the limit</Badge>
  return <Badge tone="good">{action === 'audit' ? 'within, audit only' : 'within'}</Badge>
}

function ForecastText({ state, now }: { state: BudgetState; now: number }) {
  const forecast = forecastOf(state, now)
  switch (forecast.kind) {
    case 'exceeded':
      return <span className="text-ink-faint">limit reached</span>
    case 'unknown':
      return <span className="text-ink-faint">window has just begun</span>
    case 'within':
      return <span>{formatPercent(forecast.share)} at the end</span>
    case 'reached':
      return (
        <span className="text-warn" title={formatDateTime(forecast.at)}>
          limit reached {formatAgo(forecast.at, now)}
        </span>
      )
  }
}

function amount(text: string, unit: 'USD' | 'Tokens'): string {
  return unit === 'USD' ? formatMoney(Number(text)) : formatCompact(Number(text))
}
