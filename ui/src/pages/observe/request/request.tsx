import { ArrowLeft } from 'lucide-react'
import { Link, useParams } from 'wouter'
import { useHistoryState } from 'wouter/use-browser-location'
import { ApiError } from '../../../api/client.ts'
import type { ExplainedRequest } from '../../../api/ledger/explanation.ts'
import { useRequest } from '../../../api/ledger/requests.ts'
import { CopyButton } from '../../../components/action/copy-button.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { formatDateTime } from '../../../format/time.ts'
import { isLedgerMissing, LedgerMissing } from '../ledger-missing.tsx'
import { StatusBadge, subjectOf } from '../requests/request-cells.tsx'
import { Payload } from './payload.tsx'
import { RequestFacts } from './request-facts.tsx'
import { RequestSteps } from './request-steps.tsx'
import { spansOf } from './spans.ts'
import { Waterfall } from './waterfall.tsx'

/** One request: facts, times, decisions, content. */
export default function Request() {
  const { id = '' } = useParams<{ id: string }>()
  const { data, error, isPending, refetch } = useRequest(id)
  const state = useHistoryState<{ search?: string } | null>()
  const back = (
    <Link
      href={`/requests${state?.search ? `?${state.search}` : ''}`}
      className="inline-flex items-center gap-1.5 text-sm text-ink-soft hover:text-ink"
    >
      <ArrowLeft className="size-4" aria-hidden />
      Requests
    </Link>
  )
  return (
    <Page
      title={data === undefined ? 'Request' : subjectOf(data.request)}
      about={
        <span className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
          {data && <StatusBadge status={data.request.httpStatus} />}
          {data && <span>{formatDateTime(data.request.completedAt)}</span>}
          <span className="flex min-w-0 items-center">
            <code className="break-all">{id}</code>
            <CopyButton text={id} label="Copy the request id" />
          </span>
        </span>
      }
      actions={
        <>
          {back}
          <CopyButton text={location.href} label="Copy link" withText />
        </>
      }
    >
      {isLedgerMissing(error) ? (
        <LedgerMissing />
      ) : error ? (
        <ErrorState error={error} {...(isFinal(error) ? {} : { onRetry: () => refetch() })} />
      ) : isPending ? (
        <Card>
          <SkeletonLines count={8} />
        </Card>
      ) : (
        <RequestContent explained={data} />
      )}
    </Page>
  )
}

function isFinal(error: unknown): boolean {
  return error instanceof ApiError && error.status === 400
}

function RequestContent({ explained }: { explained: ExplainedRequest }) {
  const { request, explanation } = explained
  const failed = request.httpStatus >= 400 || request.incomplete
  const cause = explanation?.cause ?? request.refusedBy ?? request.error
  return (
    <>
      {cause && cause !== 'served' && (
        <Notice tone={request.httpStatus >= 500 ? 'bad' : failed ? 'warn' : 'info'} title={sentence(cause)} />
      )}
      <div className="grid grid-cols-1 gap-6 xl:grid-cols-[minmax(0,1fr)_21rem]">
        <div className="min-w-0 space-y-6">
          <Card title="Time" about="From the head of the request to the last byte of the response">
            <Waterfall spans={spansOf(request, explanation)} totalMs={request.durationMs} />
          </Card>
          <Card title="Decisions" about="Each step of the request with the figures it decided on">
            <RequestSteps request={request} explanation={explanation} />
          </Card>
          <Payload request={request} />
        </div>
        <RequestFacts request={request} />
      </div>
    </>
  )
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
