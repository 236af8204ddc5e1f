import type { LiveState } from '../../api/live.ts'
import { Sparkline } from '../../components/data/sparkline.tsx'
import { Stat } from '../../components/data/stat.tsx'
import { formatMoney } from '../../format/money.ts'
import { formatCompact, formatNumber, formatPercent } from '../../format/number.ts'
import { formatDuration } from '../../format/time.ts'

const points = 60

/** Traffic of now, each figure with its last minutes. */
export function LiveStats({ live }: { live: LiveState | undefined }) {
  const recent = live?.points.slice(-points) ?? []
  const now = live?.now
  const seconds = live?.bucketSeconds ?? 5
  const time = (value: number | undefined) => (value === undefined ? '–' : formatDuration(value))
  return (
    <section aria-label="Traffic now" className="grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6">
      <Stat
        name="Requests per second"
        value={now ? formatNumber(rounded(now.requestsPerSecond)) : '–'}
        note={now ? `${formatNumber(now.activeRequests)} in progress` : '\u00a0'}
        plot={<Sparkline values={recent.map(({ requests }) => requests / seconds)} />}
      />
      <Stat
        name="Error rate"
        value={now ? formatPercent(now.errorRate) : '–'}
        note={`${formatCompact(sum(recent.map(({ errors }) => errors)))} failed, ${formatCompact(sum(recent.map(({ refused }) => refused)))} refused in 5 min`}
        plot={<Sparkline values={recent.map(({ errors }) => errors)} />}
      />
      <Stat
        name="Latency p50"
        value={time(now?.p50Ms)}
        note="half are faster"
        plot={<Sparkline values={recent.map(({ p50Ms }) => p50Ms ?? 0)} />}
      />
      <Stat
        name="Latency p99"
        value={time(now?.p99Ms)}
        note="1 of 100 is slower"
        plot={<Sparkline values={recent.map(({ p99Ms }) => p99Ms ?? 0)} />}
      />
      <Stat
        name="Tokens per minute"
        value={now ? formatCompact(Math.round(now.tokensPerMinute)) : '–'}
        note="input and output"
        plot={
          <Sparkline values={recent.map(({ inputTokens, outputTokens }) => inputTokens + outputTokens)} />
        }
      />
      <Stat
        name="Cost per hour"
        value={now ? formatMoney(now.costUsdPerHour) : '–'}
        note="at the rate of now"
        plot={<Sparkline values={recent.map(({ costUsd }) => costUsd)} />}
      />
    </section>
  )
}

function rounded(value: number): number {
  return value >= 100 ? Math.round(value) : Math.round(value * 10) / 10
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
