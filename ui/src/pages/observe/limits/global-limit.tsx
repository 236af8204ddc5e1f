import type { GlobalLimit } from '../../../api/limits.ts'
import { Facts } from '../../../components/data/facts.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { formatNumber } from '../../../format/number.ts'
import { formatAgo } from '../../../format/time.ts'
import { RefusedLink } from './local-limit.tsx'

/** Limits of a rate limit service, and its replies since the start of the gateway. */
export function GlobalLimitCard({ limit }: { limit: GlobalLimit }) {
  const { limit: label, domain, service, failureMode, descriptors, checks, reports, lastFailure } = limit
  const count = (name: string) => formatNumber(checks[name] ?? 0)
  return (
    <Card title={label} about={`Counted by the service ${service}`} actions={<RefusedLink label={label} />}>
      {lastFailure && (
        <div className="mb-4">
          <Notice tone="warn" title={`The service failed ${formatAgo(lastFailure.at)}`}>
            {lastFailure.reason}
          </Notice>
        </div>
      )}
      <Facts
        facts={[
          ['Domain', domain],
          ['Allowed', count('allowed')],
          ['Refused', count('refused')],
          ['During failures', `${count('failed_open')} admitted, ${count('failed_closed')} refused`],
          ['Failure mode', failureMode === 'failOpen' ? 'admits requests' : 'refuses requests'],
          ['Reports in the queue', formatNumber(reports['pending'] ?? 0)],
          ['Descriptors', descriptors.map(({ type, keys }) => `${keys.join(' + ')} (${type})`).join(', ')],
        ]}
      />
    </Card>
  )
}
