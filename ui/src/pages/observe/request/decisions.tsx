import type {
  Attempt,
  BudgetDecision,
  Explanation,
  PolicyDecision,
  RouteCandidate,
} from '../../../api/ledger/explanation.ts'
import type { GuardDecision, LimitDecision } from '../../../api/ledger/log-entry.ts'
import { Badge, type Tone } from '../../../components/feedback/badge.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatNumber } from '../../../format/number.ts'
import { formatDateTime, formatDuration } from '../../../format/time.ts'
import { Meter } from '../meter.tsx'
import { Rules, rulesOf } from './rules.tsx'

/** The selected route, and the reason why each other one was not. */
export function RouteCandidates({ candidates }: { candidates: readonly RouteCandidate[] }) {
  return (
    <ul className="space-y-1 text-xs">
      {candidates.map((candidate, index) => (
        <li key={index} className="flex flex-wrap items-baseline gap-x-2.5 gap-y-0.5">
          <Badge tone={candidate.result === 'selected' ? 'good' : 'neutral'}>{candidate.result}</Badge>
          <span className="font-medium">{candidate.route}</span>
          <code className="break-all text-ink-soft">
            {candidate.hostname} {candidate.path}
          </code>
          <span className="text-ink-soft">{reasonOfCandidate(candidate)}</span>
        </li>
      ))}
    </ul>
  )
}

function reasonOfCandidate({ result, by, condition, name }: RouteCandidate): string {
  if (result === 'selected') return 'the most specific match'
  if (result === 'outranked')
    return by === 'order'
      ? 'matches too, but is later in the order'
      : `matches too, but its ${by} is less specific`
  return `${condition ?? 'condition'}${name === undefined ? '' : ` ${name}`} does not match`
}

/** Policies in order. Those without a decision of their own are one line. */
export function Policies({ policies }: { policies: readonly PolicyDecision[] }) {
  return (
    <ul className="divide-y divide-line rounded-lg border border-line">
      {policies.map((policy, index) => {
        const rules = rulesOf(policy.decision)
        return (
          <li key={index} className="space-y-2 px-3 py-2 text-sm">
            <div className="flex items-center gap-3">
              <Badge tone={policy.result === 'stopped' ? 'bad' : 'good'}>{policy.result}</Badge>
              <span className="min-w-0 flex-1 truncate">{policy.policy}</span>
              {policy.durationMs !== undefined && (
                <span className="text-xs text-ink-faint tabular">
                  waited {formatDuration(policy.durationMs)}
                </span>
              )}
            </div>
            {rules !== undefined && <Rules rules={rules.rules} />}
            {rules === undefined && policy.decision !== undefined && (
              <code className="block text-xs break-all text-ink-soft">{JSON.stringify(policy.decision)}</code>
            )}
          </li>
        )
      })}
    </ul>
  )
}

export function Limits({ limits }: { limits: readonly LimitDecision[] }) {
  return (
    <ul className="space-y-2.5">
      {limits.map(({ limit, unit, capacity, remaining, resetSeconds, refused }, index) => (
        <li
          key={index}
          className="grid grid-cols-1 items-center gap-x-4 gap-y-1 text-sm lg:grid-cols-[minmax(0,1fr)_8rem_19rem]"
        >
          <span className="flex min-w-0 items-center gap-2">
            <span className="truncate">{limit}</span>
            {refused && <Badge tone="bad">refused</Badge>}
          </span>
          <Meter label={`Used of ${limit}`} used={capacity === 0 ? 1 : 1 - remaining / capacity} />
          <span className="text-xs text-ink-soft tabular lg:text-right">
            {formatNumber(remaining)} of {formatNumber(capacity)} {unit} left
            {resetSeconds !== undefined && `, reset in ${formatDuration(resetSeconds * 1_000)}`}
          </span>
        </li>
      ))}
    </ul>
  )
}

export function Budgets({ budgets }: { budgets: readonly BudgetDecision[] }) {
  return (
    <ul className="space-y-3">
      {budgets.map((budget) => {
        const { name, value, unit, limit, used, reserved, left, estimate, outcome, window } = budget
        const amount = (number: number) =>
          unit === 'usd' ? formatMoney(number) : `${formatNumber(number)} tokens`
        return (
          <li
            key={budget.budget + value}
            className="grid grid-cols-1 items-center gap-x-4 gap-y-1 text-sm lg:grid-cols-[minmax(0,1fr)_8rem_19rem]"
          >
            <span className="flex min-w-0 items-center gap-2">
              <span className="truncate">
                {name}
                {value !== '' && <span className="text-ink-soft"> of {value}</span>}
              </span>
              <Badge
                tone={
                  outcome === 'refused' || outcome === 'unavailable'
                    ? 'bad'
                    : outcome === 'admitted'
                      ? 'neutral'
                      : 'warn'
                }
              >
                {outcome}
              </Badge>
            </span>
            <Meter label={`Used of ${name}`} used={used / limit} reserved={reserved / limit} />
            <span className="text-xs text-ink-soft tabular lg:text-right">
              {amount(left)} of {amount(limit)} left
            </span>
            <span className="text-xs text-ink-faint lg:col-span-3">
              {amount(used)} used, {amount(reserved)} reserved by requests in progress, {amount(estimate)}{' '}
              estimated for this request; until {formatDateTime(window.end)}
            </span>
          </li>
        )
      })}
    </ul>
  )
}

const guardTones: Readonly<Record<string, Tone>> = {
  allow: 'good',
  mask: 'warn',
  audit_mask: 'info',
  audit_reject: 'info',
  reject: 'bad',
  fail_closed: 'bad',
  fail_open: 'warn',
}

export function Guards({ guards }: { guards: readonly GuardDecision[] }) {
  return (
    <ul className="divide-y divide-line rounded-lg border border-line">
      {guards.map(({ guard, phase, outcome, reason, durationMs }, index) => (
        <li key={index} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 text-sm">
          <Badge tone={guardTones[outcome] ?? 'neutral'}>{outcome.replace('_', ' ')}</Badge>
          <span className="min-w-0 flex-1 truncate">
            {guard} <span className="text-ink-faint">on the {phase}</span>
          </span>
          <span className="text-xs text-ink-faint tabular">{formatDuration(durationMs)}</span>
          {reason !== undefined && (
            <span className="basis-full text-xs break-words text-ink-soft">{reason}</span>
          )}
        </li>
      ))}
    </ul>
  )
}

const attemptTones: Record<Attempt['outcome'], Tone> = {
  responded: 'good',
  failed: 'bad',
  skipped: 'neutral',
  'no response': 'warn',
}

export function Attempts({ attempts }: { attempts: readonly Attempt[] }) {
  return (
    <ol className="divide-y divide-line rounded-lg border border-line">
      {attempts.map((attempt, index) => {
        const { target, provider, model, session, outcome, status, failure, skipped, durationMs } = attempt
        const details = [provider, model === target ? undefined : model, session && `${session} session`]
        return (
          <li key={index} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 text-sm">
            <Badge tone={status !== undefined && status >= 400 ? 'bad' : attemptTones[outcome]}>
              {status ?? outcome}
            </Badge>
            <span className="min-w-0 flex-1 truncate">
              {target} <span className="text-ink-faint">{details.filter(Boolean).join(', ')}</span>
            </span>
            {durationMs !== undefined && (
              <span className="text-xs text-ink-faint tabular">{formatDuration(durationMs)}</span>
            )}
            {(failure ?? skipped) && (
              <span className="basis-full text-xs break-words text-ink-soft">{failure ?? skipped}</span>
            )}
          </li>
        )
      })}
    </ol>
  )
}

export function Items({ items }: { items: NonNullable<Explanation['items']> }) {
  return (
    <ul className="divide-y divide-line rounded-lg border border-line">
      {items.map(({ rules, item, permitted, results }, index) => (
        <li key={index} className="space-y-2 px-3 py-2 text-sm">
          <div className="flex items-center gap-3">
            <Badge tone={permitted ? 'good' : 'bad'}>{permitted ? 'permitted' : 'refused'}</Badge>
            <span className="min-w-0 flex-1 truncate">
              {item.kind} {item.name}
              {item.target && <span className="text-ink-faint"> of {item.target}</span>}
            </span>
            <span className="truncate text-xs text-ink-faint">{rules}</span>
          </div>
          {results && <Rules rules={results} />}
        </li>
      ))}
    </ul>
  )
}
