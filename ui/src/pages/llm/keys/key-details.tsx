import type { ReactNode } from 'react'
import { useBudgets } from '../../../api/budgets.ts'
import type { KeyLimit, KeyUsage, VirtualKey } from '../../../api/llm/keys.ts'
import type { ConfigRecord } from '../../../api/resources.ts'
import { ButtonLink } from '../../../components/action/button.tsx'
import { Facts } from '../../../components/data/facts.tsx'
import { Sparkline } from '../../../components/data/sparkline.tsx'
import { Stat } from '../../../components/data/stat.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatCompact, formatNumber, formatPercent } from '../../../format/number.ts'
import { formatAgo, formatDateTime } from '../../../format/time.ts'
import { BudgetMeter } from './budget-meter.tsx'
import { KeyBadge } from './key-badge.tsx'

const dayMs = 86_400_000

/** Usage, settings, budgets and limits of a key. */
export function KeyDetails({
  virtualKey,
  record,
}: {
  virtualKey: VirtualKey
  record: ConfigRecord | undefined
}) {
  const { usage, budgets = [] } = virtualKey
  return (
    <>
      {usage && <UsageStats usage={usage} />}
      <Card
        title="Key"
        actions={
          usage && (
            <>
              <ButtonLink size="small" href={`/requests?keyId=${encodeURIComponent(virtualKey.id)}`}>
                Requests
              </ButtonLink>
              <ButtonLink size="small" href={`/usage?keyId=${encodeURIComponent(virtualKey.id)}`}>
                Usage
              </ButtonLink>
            </>
          )
        }
      >
        <Facts facts={factsOf(virtualKey, record)} />
      </Card>
      <div className="grid grid-cols-1 gap-6 lg:grid-cols-2">
        <Card title="Access">
          <Facts
            facts={[
              ['Models', <Patterns key="models" values={virtualKey.allowedModels} />],
              ['MCP servers', <Patterns key="targets" values={virtualKey.allowedTargets} />],
            ]}
          />
        </Card>
        <Card title="Limits">
          <Limits limits={virtualKey.limits ?? []} />
        </Card>
      </div>
      {budgets.length > 0 && <Budgets id={virtualKey.id} />}
    </>
  )
}

function factsOf(
  key: VirtualKey,
  record: ConfigRecord | undefined,
): readonly (readonly [string, ReactNode])[] {
  const { user, group, metadata = {}, expiresAt, lastUsedAt, createdAt, scope, previousKeys = [] } = key
  const own = Object.entries(metadata).filter(([name]) => !['name', 'user', 'group', 'id'].includes(name))
  return [
    ['State', <KeyBadge key="state" virtualKey={key} />],
    ['User', user],
    ['Group', group],
    ['Last used', lastUsedAt ? <Moment key="used" time={lastUsedAt} /> : 'never'],
    ['Expires', expiresAt ? <Moment key="end" time={expiresAt} /> : 'never'],
    ['Created', createdAt && <Moment key="created" time={createdAt} />],
    ['Scope', scope],
    ['Stored in', placeOf(key, record)],
    [
      'Earlier secrets',
      previousKeys.length === 0 ? undefined : (
        <span key="earlier">
          {previousKeys.map(({ expiresAt: end }) => (
            <span key={end} className="block">
              valid until {formatDateTime(end)}
            </span>
          ))}
        </span>
      ),
    ],
    ...own.map(([name, value]): readonly [string, ReactNode] => [
      name,
      <span key={name} dir="auto">
        {typeof value === 'string' ? value : JSON.stringify(value)}
      </span>,
    ]),
  ]
}

function placeOf({ source }: VirtualKey, record: ConfigRecord | undefined): string {
  if (source === 'database') return 'database'
  if (source === 'object') return 'Secret of the cluster'
  const line = record?.origin?.kind === 'file' ? record.origin.line : undefined
  return line === undefined ? 'configuration file' : `configuration file, line ${line}`
}

function Moment({ time }: { time: string }) {
  return (
    <time dateTime={time} title={formatDateTime(time)}>
      {formatAgo(time)}
    </time>
  )
}

function Patterns({ values }: { values: readonly string[] | undefined }) {
  if (values === undefined) return 'all'
  if (values.length === 0) return 'none'
  return (
    <span className="flex flex-wrap gap-1.5 pt-1">
      {values.map((value) => (
        <code key={value} className="rounded-md border border-line bg-sunken px-1.5 py-0.5 text-xs break-all">
          {value}
        </code>
      ))}
    </span>
  )
}

function Limits({ limits }: { limits: readonly KeyLimit[] }) {
  if (limits.length === 0) return <p className="text-sm text-ink-soft">No limits of its own.</p>
  return (
    <ul className="space-y-1.5 text-sm">
      {limits.map(({ requests, tokens, unit, burst }, index) => (
        <li key={index} className="tabular">
          {requests === undefined
            ? `${formatNumber(tokens ?? 0)} tokens`
            : `${formatNumber(requests)} requests`}{' '}
          per {unit.slice(0, -1).toLowerCase()}
          {burst !== undefined && burst > 0 && (
            <span className="text-ink-faint"> and a burst of {formatNumber(burst)}</span>
          )}
        </li>
      ))}
    </ul>
  )
}

function Budgets({ id }: { id: string }) {
  const { data } = useBudgets({ apiKeyId: id })
  if (data === undefined) return null
  return (
    <Card title="Budgets" about="Used in the current period.">
      <div className="grid grid-cols-1 gap-5 sm:grid-cols-2 xl:grid-cols-3">
        {data.budgets.map((budget) => (
          <BudgetMeter key={budget.budget} budget={budget} />
        ))}
      </div>
    </Card>
  )
}

function UsageStats({ usage }: { usage: KeyUsage }) {
  const { requests, errors, totalTokens, cost } = usage
  const series = (pick: (day: KeyUsage['days'][number]) => number) => {
    const values = Array.from({ length: 30 }, () => 0)
    const start = Date.parse(usage.to) - 30 * dayMs
    for (const day of usage.days) {
      const index = Math.floor((Date.parse(day.start) - start) / dayMs)
      if (index >= 0 && index < 30) values[index] = pick(day)
    }
    return <Sparkline values={values} />
  }
  const note = 'last 30 days'
  return (
    <div className="grid grid-cols-1 gap-4 sm:grid-cols-2 xl:grid-cols-4">
      <Stat
        name="Requests"
        value={formatCompact(requests)}
        note={note}
        plot={series((day) => day.requests)}
      />
      <Stat
        name="Errors"
        value={requests === 0 ? '0' : formatPercent(errors / requests)}
        note={`${formatNumber(errors)} of ${formatNumber(requests)} requests`}
        plot={series((day) => day.errors)}
      />
      <Stat
        name="Tokens"
        value={formatCompact(totalTokens)}
        note={note}
        plot={series((day) => day.totalTokens)}
      />
      <Stat
        name="Spend"
        value={formatMoney(Number(cost))}
        note={note}
        plot={series((day) => Number(day.cost))}
      />
    </div>
  )
}
