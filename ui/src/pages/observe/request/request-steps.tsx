import {
  ArrowDownToLine,
  CircleCheck,
  CircleX,
  Gauge,
  KeyRound,
  ListChecks,
  Send,
  ShieldCheck,
  Signpost,
  Wallet,
  Wrench,
} from 'lucide-react'
import type { Explanation } from '../../../api/ledger/explanation.ts'
import type { LogEntry } from '../../../api/ledger/log-entry.ts'
import { Notice } from '../../../components/feedback/notice.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatNumber } from '../../../format/number.ts'
import { formatDuration } from '../../../format/time.ts'
import { Attempts, Budgets, Guards, Items, Limits, Policies, RouteCandidates } from './decisions.tsx'
import { Step, Timeline } from './timeline.tsx'

type StepsProps = { readonly request: LogEntry; readonly explanation: Explanation | null }

/** The explanation of a request as a timeline. Without one, the decisions in its row. */
export function RequestSteps({ request, explanation }: StepsProps) {
  const limits = explanation?.limits ?? request.limits ?? []
  const guards = explanation?.guards ?? request.guards ?? []
  const { policies = [], budgets = [], items = [], attempts = [], truncated } = explanation ?? {}
  const stopped = policies.find(({ result }) => result === 'stopped')
  return (
    <div className="space-y-5">
      {explanation === null && (
        <Notice title="No explanation is stored for this request">
          By default, refused and failed requests have one. With <code>config.logging.explain: all</code>{' '}
          every new request has one.
        </Notice>
      )}
      {truncated && truncated.length > 0 && (
        <Notice tone="warn" title={`Sections omitted because of their size: ${truncated.join(', ')}`} />
      )}
      <Timeline>
        <Step
          icon={ArrowDownToLine}
          title="Received"
          result={`${request.method} ${request.path} from ${request.client}, listener ${request.listener}`}
        />
        <RouteStep request={request} explanation={explanation} />
        <CallerStep request={request} explanation={explanation} />
        {policies.length > 0 && (
          <Step
            icon={ListChecks}
            title="Policies"
            tone={stopped ? 'bad' : 'good'}
            result={stopped ? `stopped by ${stopped.policy}` : `${policies.length} passed`}
          >
            <Policies policies={policies} />
          </Step>
        )}
        {limits.length > 0 && (
          <Step
            icon={Gauge}
            title="Limits"
            tone={limits.some(({ refused }) => refused) ? 'bad' : 'good'}
            result={resultOfLimits(limits.filter(({ refused }) => refused).map(({ limit }) => limit))}
          >
            <Limits limits={limits} />
          </Step>
        )}
        {budgets.length > 0 && (
          <Step
            icon={Wallet}
            title="Budgets"
            tone={budgets.some(({ outcome }) => outcome === 'refused') ? 'bad' : 'good'}
            result={`${budgets.length} checked before the call`}
          >
            <Budgets budgets={budgets} />
          </Step>
        )}
        {guards.length > 0 && (
          <Step
            icon={ShieldCheck}
            title="Guards"
            tone={
              guards.some(({ outcome }) => outcome === 'reject' || outcome === 'fail_closed') ? 'bad' : 'good'
            }
            result={`${guards.length} ${guards.length === 1 ? 'decision' : 'decisions'}`}
          >
            <Guards guards={guards} />
          </Step>
        )}
        {items.length > 0 && (
          <Step
            icon={Wrench}
            title="Rules on tools, prompts and resources"
            tone={items.some(({ permitted }) => !permitted) ? 'bad' : 'good'}
          >
            <Items items={items} />
          </Step>
        )}
        {attempts.length > 0 && (
          <Step
            icon={Send}
            title="Attempts"
            tone={attempts.at(-1)?.outcome === 'responded' ? 'good' : 'bad'}
            result={attempts.length === 1 ? 'one call' : `${attempts.length} calls until a response`}
          >
            <Attempts attempts={attempts} />
          </Step>
        )}
        <ResponseStep request={request} />
      </Timeline>
    </div>
  )
}

function resultOfLimits(refused: readonly string[]): string {
  return refused.length === 0 ? 'within all of them' : `exhausted: ${refused.join(', ')}`
}

function RouteStep({ request, explanation }: StepsProps) {
  const candidates = explanation?.routing?.candidates ?? []
  const others = candidates.filter(({ result }) => result !== 'selected').length
  return (
    <Step
      icon={Signpost}
      title="Route"
      tone="good"
      result={
        others === 0
          ? request.route
          : `${request.route}, before ${others} ${others === 1 ? 'other' : 'others'}`
      }
    >
      {candidates.length > 0 && <RouteCandidates candidates={candidates} />}
    </Step>
  )
}

function CallerStep({ request, explanation }: StepsProps) {
  const { keyName, keyId, user, group } = request
  const key = explanation?.key
  const names = [
    (keyName ?? keyId) && `key ${keyName ?? keyId}`,
    user && `user ${user}`,
    group && `group ${group}`,
  ].filter(Boolean)
  const restrictions = [
    key?.models && `models ${key.models.join(', ')}`,
    key?.targets && `servers ${key.targets.join(', ')}`,
    key?.limits && `limits ${key.limits.join(', ')}`,
    key?.budgets && `budgets ${key.budgets.join(', ')}`,
    key?.expiresAt && `expires ${key.expiresAt}`,
  ].filter(Boolean)
  return (
    <Step
      icon={KeyRound}
      title="Caller"
      tone={names.length === 0 ? 'neutral' : 'good'}
      result={names.length === 0 ? 'not identified' : names.join(', ')}
    >
      {restrictions.length > 0 && (
        <p className="text-xs break-words text-ink-soft">The key has {restrictions.join('; ')}.</p>
      )}
    </Step>
  )
}

function ResponseStep({ request }: { request: LogEntry }) {
  const { httpStatus, durationMs, usage, cost, incomplete } = request
  const failed = httpStatus >= 400 || incomplete
  const parts = [
    `status ${httpStatus}`,
    `after ${formatDuration(durationMs)}`,
    usage.totalTokens !== null && `${formatNumber(usage.totalTokens)} tokens`,
    cost !== null && formatMoney(cost),
    incomplete && 'incomplete',
  ]
  return (
    <Step
      icon={failed ? CircleX : CircleCheck}
      title="Response"
      tone={httpStatus >= 500 ? 'bad' : failed ? 'warn' : 'good'}
      result={parts.filter(Boolean).join(', ')}
    />
  )
}
