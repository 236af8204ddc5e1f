import { Link } from 'wouter'
import type { BucketStatus, KeyedStatus, LocalLimit } from '../../../api/limits.ts'
import { Badge } from '../../../components/feedback/badge.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { formatNumber } from '../../../format/number.ts'
import { formatDuration } from '../../../format/time.ts'
import { Meter } from '../meter.tsx'

/** One limit with what is left of it. */
export function LocalLimitCard({ limit }: { limit: LocalLimit }) {
  const { limit: label, counts, capacity, refill, intervalSeconds, shared, state } = limit
  const burst = capacity - refill
  return (
    <Card
      title={label}
      about={
        <>
          {formatNumber(refill)} {counts} per {intervalText(intervalSeconds)}
          {burst > 0 && `, burst ${formatNumber(burst)}`}
          {'key' in state && (
            <>
              {' by '}
              <code>{state.key}</code>
            </>
          )}
        </>
      }
      actions={<RefusedLink label={label} />}
    >
      {shared && (
        <p className="mb-3 text-xs text-ink-soft">
          One count for {shared.processes} {shared.processes === 1 ? 'process' : 'processes'}{' '}
          {!shared.synchronized && <Badge tone="warn">database away: each process counts alone</Badge>}
        </p>
      )}
      {'key' in state ? (
        <KeyedState state={state} capacity={capacity} />
      ) : (
        <Count label={label} status={state} capacity={capacity} />
      )}
    </Card>
  )
}

/** Link to the requests that a limit refused. */
export function RefusedLink({ label }: { label: string }) {
  const parameters = new URLSearchParams({ refusedBy: `rate-limit: ${label}`, range: '24h' })
  return (
    <Link href={`/requests?${parameters}`} className="text-xs whitespace-nowrap text-accent hover:underline">
      Refused requests
    </Link>
  )
}

function KeyedState({ state, capacity }: { state: KeyedStatus; capacity: number }) {
  const { values, exhausted, fullest } = state
  return (
    <div className="space-y-2.5">
      <p className="flex items-center gap-2 text-xs text-ink-soft">
        {formatNumber(values)} {values === 1 ? 'value' : 'values'} in use
        {exhausted > 0 && <Badge tone="bad">{formatNumber(exhausted)} exhausted</Badge>}
      </p>
      {fullest.map((status) => (
        <Count
          key={status.value}
          label={status.value}
          name={status.value}
          status={status}
          capacity={capacity}
        />
      ))}
    </div>
  )
}

type CountProps = {
  readonly label: string
  /** Displayed before the bar. */
  readonly name?: React.ReactNode
  readonly status: BucketStatus
  readonly capacity: number
}

/** What is left of one count, and until when. */
export function Count({ label, name, status: { remaining, resetSeconds }, capacity }: CountProps) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 gap-y-1 text-sm">
      <span className="min-w-0 truncate">{name}</span>
      <span className="text-right text-xs text-ink-soft tabular">
        {remaining <= 0 && <Badge tone="bad">exhausted</Badge>} {formatNumber(remaining)} of{' '}
        {formatNumber(capacity)} left
        {resetSeconds > 0 && `, refill in ${formatDuration(resetSeconds * 1_000)}`}
      </span>
      <span className="col-span-2">
        <Meter label={`Used of ${label}`} used={capacity === 0 ? 1 : 1 - remaining / capacity} />
      </span>
    </div>
  )
}

export function intervalText(seconds: number): string {
  const names: Readonly<Record<number, string>> = { 1: 'second', 60: 'minute', 3600: 'hour', 86400: 'day' }
  return names[seconds] ?? formatDuration(seconds * 1_000)
}
