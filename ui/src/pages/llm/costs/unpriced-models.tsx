import { TriangleAlert } from 'lucide-react'
import { useSummary } from '../../../api/ledger/summary.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { formatCompact } from '../../../format/number.ts'
import type { ModelPlace } from './catalog-edit.ts'

const dayMs = 86_400_000
const days = 7
const maxShown = 10

/** Models of the last week whose cost is unknown. Nothing without any, or without a ledger. */
export function UnpricedModels({ onSetPrice }: { onSetPrice: ((place: ModelPlace) => void) | undefined }) {
  const { data: whoami } = useWhoami()
  const from = (Math.floor(Date.now() / dayMs) - days) * dayMs
  const { data } = useSummary(
    {
      timeRange: { from: new Date(from).toISOString() },
      filters: { costStatus: ['missing', 'unpriced'] },
      groupBy: ['provider', 'servedModel'],
      bucketCount: 1,
    },
    { enabled: whoami?.ledger === true },
  )
  const rows = (data?.groups ?? []).flatMap(({ group, requests, totalTokens, other }) => {
    const { provider, servedModel } = group
    if (other || typeof provider !== 'string' || typeof servedModel !== 'string') return []
    return [{ provider, model: servedModel, requests, totalTokens }]
  })
  if (rows.length === 0) return null
  return (
    <Card
      title={
        <span className="flex items-center gap-2">
          <TriangleAlert className="size-4 text-warn" aria-hidden />
          Used without a price
        </span>
      }
      about={`Requests of the last ${days} days whose cost is unknown. Budgets in dollars do not count them.`}
    >
      <ul className="divide-y divide-line">
        {rows.slice(0, maxShown).map(({ provider, model, requests, totalTokens }) => (
          <li
            key={`${provider}/${model}`}
            className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2 text-sm"
          >
            <span className="min-w-0 flex-1 truncate font-mono text-xs">{model}</span>
            <Badge>{provider}</Badge>
            <span className="text-xs text-ink-soft tabular">
              {formatCompact(requests)} requests, {formatCompact(totalTokens)} tokens
            </span>
            {onSetPrice && (
              <Button
                size="small"
                aria-label={`Set price of ${model}`}
                onClick={() => onSetPrice({ provider, model })}
              >
                Set price
              </Button>
            )}
          </li>
        ))}
      </ul>
      {rows.length > maxShown && (
        <p className="pt-2 text-xs text-ink-faint">And {rows.length - maxShown} further models.</p>
      )}
    </Card>
  )
}
