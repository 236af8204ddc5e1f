import { useEffect, useMemo, useState } from 'react'
import { useLiveState } from '../../api/live.ts'
import { useGatewayState } from '../../api/state.ts'
import { useWhoami } from '../../api/whoami.ts'
import { ButtonLink } from '../../components/action/button.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { Skeleton } from '../../components/feedback/skeleton.tsx'
import { Page } from '../../components/layout/page.tsx'
import { toTimeRange } from '../observe/range/time-range.ts'
import { Day } from './day.tsx'
import { Leaders } from './leaders.tsx'
import { LiveStats } from './live-stats.tsx'
import { Problems } from './problems.tsx'
import { Counts, Listeners, Replicas } from './running.tsx'

/** The gateway at a glance: problems, traffic of now and of the day, leaders, and what runs. */
export default function Overview() {
  const state = useGatewayState()
  const { data: live } = useLiveState()
  const { data: whoami } = useWhoami()
  const timeRange = useLastDay()
  return (
    <Page
      title="Overview"
      about="What runs, what it costs, and what needs attention."
      actions={
        <>
          <ButtonLink href="/clients">Connect a client</ButtonLink>
          <ButtonLink tone="primary" href="/start">
            Get started
          </ButtonLink>
        </>
      }
    >
      {state.isError && <ErrorState error={state.error} onRetry={() => state.refetch()} />}
      {state.data ? (
        <Problems problems={state.data.problems} />
      ) : (
        state.isPending && <Skeleton className="h-12 w-full rounded-xl" />
      )}
      <LiveStats live={live} />
      {whoami?.ledger === true && (
        <>
          <Day timeRange={timeRange} />
          <div className="grid grid-cols-1 gap-6 md:grid-cols-2 xl:grid-cols-3">
            <Leaders title="Top models" field="servedModel" timeRange={timeRange} />
            <Leaders title="Top keys" field="keyId" timeRange={timeRange} />
            <Leaders title="Top users" field="user" timeRange={timeRange} />
          </div>
        </>
      )}
      {whoami?.ledger === false && (
        <Notice
          title="History is off"
          action={
            <ButtonLink size="small" href="/usage">
              Turn it on
            </ButtonLink>
          }
        >
          With a database, the gateway records each request with its user, tokens and cost.
        </Notice>
      )}
      {state.data && (
        <>
          <Counts counts={state.data.counts} />
          <div className="grid grid-cols-1 gap-6 xl:grid-cols-[minmax(0,1fr)_24rem]">
            <Listeners listeners={state.data.listeners} />
            <Replicas replicas={state.data.replicas} />
          </div>
        </>
      )}
    </Page>
  )
}

const stepMs = 300_000
const dayMs = 86_400_000

/** The last 24 hours, in steps of five minutes. */
function useLastDay(): { from: string; to: string } {
  const [end, setEnd] = useState(nextStep)
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && setEnd(nextStep()), 60_000)
    return () => clearInterval(timer)
  }, [])
  return useMemo(() => toTimeRange({ from: end - dayMs, to: end }), [end])
}

function nextStep(): number {
  return Math.ceil(Date.now() / stepMs) * stepMs
}
