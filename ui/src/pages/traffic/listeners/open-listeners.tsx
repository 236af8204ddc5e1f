import { Radio } from 'lucide-react'
import { useGatewayState } from '../../../api/state.ts'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { ListenerTable } from './listener-table.tsx'

/** The ports that the gateway serves, of one gateway or of all. */
export function OpenListeners({ gateway }: { gateway?: string | undefined }) {
  const { data, error, refetch } = useGatewayState()
  if (error && !data) return <ErrorState error={error} onRetry={() => void refetch()} />
  const listeners = data?.listeners.filter(
    (listener) => gateway === undefined || listener.gateway === gateway,
  )
  return (
    <Card title="Open listeners" about="Ports of this process, those of llm and mcp included." flush>
      {listeners === undefined ? (
        <div className="px-5 pb-5">
          <SkeletonLines count={2} />
        </div>
      ) : listeners.length === 0 ? (
        <EmptyState icon={Radio} title="No port is open">
          Save a gateway with a port; it opens at once.
        </EmptyState>
      ) : (
        <ListenerTable listeners={listeners} />
      )}
    </Card>
  )
}
