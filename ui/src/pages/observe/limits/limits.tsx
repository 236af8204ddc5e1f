import { Gauge } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { type KeyLimit, type LimitState, useLimits } from '../../../api/limits.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { ButtonLink } from '../../../components/action/button.tsx'
import { CodeBlock } from '../../../components/data/code-block.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { formatNumber } from '../../../format/number.ts'
import { GlobalLimitCard } from './global-limit.tsx'
import { Count, intervalText, LocalLimitCard } from './local-limit.tsx'
import { RecentRefusals } from './recent-refusals.tsx'

const snippet = `llm:
  policies:
    localRateLimit:
      - { name: per person, requests: 60, unit: Minutes, key: apiKey.user }
      - { name: per team, tokens: 2000000, unit: Hours, key: apiKey.group }
`

const dayMs = 86_400_000

/** Live state of all limits, and the latest refusals. */
export default function Limits() {
  const { data, error, isPending, refetch } = useLimits()
  const { data: whoami } = useWhoami()
  const [from] = useState(() => new Date(Date.now() - dayMs).toISOString())
  return (
    <Page
      title="Limits"
      about="What is left of each rate limit now, and why a request was refused with 429."
      actions={<ButtonLink href="/llm/policies">Edit limits</ButtonLink>}
    >
      {error ? (
        <ErrorState error={error} onRetry={() => refetch()} />
      ) : isPending ? (
        <Card>
          <SkeletonLines count={6} />
        </Card>
      ) : (
        <LimitCards limits={data} />
      )}
      {whoami?.ledger === true && <RecentRefusals from={from} />}
    </Page>
  )
}

function LimitCards({ limits: { local, global, keys } }: { limits: LimitState }) {
  if (local.length === 0 && global.length === 0 && keys.used === 0)
    return (
      <Card>
        <EmptyState icon={Gauge} title="No limits yet">
          Rate limits restrict requests or tokens per unit of time, for all requests or for each value of an
          expression. Add one to the configuration, or limits to a key.
        </EmptyState>
        <div className="mx-auto max-w-xl pb-6">
          <CodeBlock text={snippet} label="configuration" />
        </div>
      </Card>
    )
  return (
    <div className="grid grid-cols-1 gap-6 lg:grid-cols-2 2xl:grid-cols-3">
      {local.map((limit, index) => (
        <LocalLimitCard key={index} limit={limit} />
      ))}
      {keys.used > 0 && <KeyLimits keys={keys} />}
      {global.map((limit, index) => (
        <GlobalLimitCard key={index} limit={limit} />
      ))}
    </div>
  )
}

function KeyLimits({ keys: { used, exhausted, fullest } }: { keys: LimitState['keys'] }) {
  return (
    <Card title="Limits of keys" about="Limits in the records of virtual keys, the fullest first">
      <div className="space-y-2.5">
        <p className="flex items-center gap-2 text-xs text-ink-soft">
          {formatNumber(used)} in use
          {exhausted > 0 && <Badge tone="bad">{formatNumber(exhausted)} exhausted</Badge>}
        </p>
        {fullest.map((limit, index) => (
          <Count
            key={index}
            label={limit.keyId}
            name={<KeyLimitName limit={limit} />}
            status={limit}
            capacity={limit.capacity}
          />
        ))}
      </div>
    </Card>
  )
}

function KeyLimitName({ limit: { keyId, counts, refill, intervalSeconds } }: { limit: KeyLimit }) {
  return (
    <>
      <Link href={`/llm/keys/${encodeURIComponent(keyId)}`} className="text-accent hover:underline">
        {keyId}
      </Link>{' '}
      <span className="text-xs text-ink-faint">
        {formatNumber(refill)} {counts} per {intervalText(intervalSeconds)}
      </span>
    </>
  )
}
