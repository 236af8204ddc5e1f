import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { type FinishedRequest, useFinishedRequest } from '../../../api/finished-request.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { Badge } from '../../../components/feedback/badge.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatNumber } from '../../../format/number.ts'
import { formatDuration } from '../../../format/time.ts'
import type { Answer, Run } from '../model/conversation.ts'

/** Header of a response with the id of its request. */
export function requestIdOf({ headers }: Run): string | undefined {
  return headers?.find(([name]) => name === 'x-request-id')?.[1]
}

/** Record of an answer in the ledger, once the request has ended. */
export function useLedgerRecord({ run }: Answer): FinishedRequest | undefined {
  const { data: whoami } = useWhoami()
  const ended = run.state !== 'waiting' && run.state !== 'streaming'
  const { data } = useFinishedRequest(ended && whoami?.ledger ? requestIdOf(run) : undefined)
  return data
}

/** Times, tokens, cost, guards and limits of an answer, with a link to its request. */
export function AnswerFacts({ answer }: { answer: Answer }) {
  const { run } = answer
  const record = useLedgerRecord(answer)
  const id = requestIdOf(run)
  const facts: readonly (readonly [name: string, value: ReactNode])[] = [
    ['First token', run.firstTokenMs !== undefined && formatDuration(run.firstTokenMs)],
    ['Total', run.totalMs !== undefined && formatDuration(run.totalMs)],
    [
      'Tokens',
      run.usage && `${formatNumber(run.usage.inputTokens)} in, ${formatNumber(run.usage.outputTokens)} out`,
    ],
    ['Speed', speedOf(run)],
    ['Cost', costOf(record)],
    ['Left', limitOf(run)],
  ]
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-2xs text-ink-faint">
      {facts.map(
        ([name, value]) =>
          value && (
            <span key={name} className="whitespace-nowrap">
              {name} <span className="font-medium text-ink-soft tabular">{value}</span>
            </span>
          ),
      )}
      <Guards record={record} />
      {run.finishReason === 'length' && <Badge tone="warn">Ended at the token limit</Badge>}
      {id && (
        <Link href={`/requests/${id}`} className="text-accent underline-offset-2 hover:underline">
          Open request
        </Link>
      )}
    </div>
  )
}

function Guards({ record }: { record: FinishedRequest | undefined }) {
  const guards = record?.request.guards ?? []
  const active = guards.filter(({ outcome }) => outcome !== 'allow')
  if (guards.length === 0) return null
  if (active.length === 0)
    return (
      <Badge tone="good">{guards.length === 1 ? '1 guard passed' : `${guards.length} guards passed`}</Badge>
    )
  return active.map(({ guard, phase, outcome }, index) => (
    <Badge key={index} tone={outcome === 'reject' ? 'bad' : 'warn'}>
      {guard}: {outcome} ({phase})
    </Badge>
  ))
}

function speedOf({ usage, totalMs, firstTokenMs }: Run): string | undefined {
  if (!usage || totalMs === undefined || firstTokenMs === undefined || totalMs - firstTokenMs < 20)
    return undefined
  return `${formatNumber(Math.round((usage.outputTokens / (totalMs - firstTokenMs)) * 1_000))} tokens/s`
}

function costOf(record: FinishedRequest | undefined): string | undefined {
  if (!record) return undefined
  const { cost, costStatus } = record.request
  if (costStatus === 'unpriced') return 'no price'
  if (cost === null) return undefined
  return costStatus === 'estimated' ? `about ${formatMoney(cost)}` : formatMoney(cost)
}

/** Limit headers of the gateway. */
function limitOf({ headers = [] }: Run): string | undefined {
  const value = (name: string) => headers.find(([header]) => header === name)?.[1]
  const remaining = value('x-ratelimit-remaining')
  const limit = value('x-ratelimit-limit')
  return remaining === undefined || limit === undefined
    ? undefined
    : `${formatNumber(Number(remaining))} of ${formatNumber(Number(limit))}`
}
