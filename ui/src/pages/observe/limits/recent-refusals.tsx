import { useMemo } from 'react'
import { Link } from 'wouter'
import { useRequests } from '../../../api/ledger/requests.ts'
import { Card } from '../../../components/layout/card.tsx'
import { RequestTable } from '../requests/request-table.tsx'

const shown = 5

/** The newest responses with status 429 and the limit of each. */
export function RecentRefusals({ from }: { from: string }) {
  const search = useMemo(() => ({ filters: { status: [429] }, timeRange: { from }, limit: shown }), [from])
  const { data } = useRequests(search)
  if (data === undefined || data.logs.length === 0) return null
  return (
    <Card
      flush
      title="Latest refusals"
      about="Responses with status 429. Open one to see the limit, what was left of it, and until when."
      actions={
        <Link href="/requests?status=429&range=24h" className="text-xs text-accent hover:underline">
          All
        </Link>
      }
    >
      <RequestTable requests={data.logs} label="Latest refusals" />
    </Card>
  )
}
