import type { ConfigRecord } from '../../../api/resources.ts'
import type { Column } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { formatPercent } from '../../../format/number.ts'
import { ResourceList } from '../../resources/resource-list.tsx'
import { type Routing, sharesOf, stagesOf, strategyOf, type VirtualModelValue } from './routing.ts'
import { ShareBar } from './routing-picture.tsx'

const labels = { weighted: 'by weight', failover: 'failover', conditional: 'by condition' }

const columns: readonly Column<ConfigRecord<VirtualModelValue>>[] = [
  {
    id: 'strategy',
    title: 'Selection',
    render: ({ value }) => {
      const strategy = strategyOf(value.routing)
      return <Badge tone="accent">{strategy === undefined ? 'none' : labels[strategy]}</Badge>
    },
  },
  {
    id: 'targets',
    title: 'Targets',
    from: 'sm',
    className: 'min-w-72',
    render: ({ value }) => <Targets routing={value.routing} />,
  },
]

/** Names for several models, and how each selects its target. */
export default function VirtualModelsPage() {
  return (
    <ResourceList<VirtualModelValue>
      kind="llm.virtualModel"
      title="Virtual models"
      about="Names that distribute requests over several models: by weight, as failover, or by condition."
      noun="virtual model"
      path="/llm/virtual-models"
      empty={{
        text: 'Move traffic to another model step by step, survive an outage of a provider, or route by team.',
      }}
      columns={columns}
    />
  )
}

function Targets({ routing }: { routing: Routing | undefined }) {
  switch (strategyOf(routing)) {
    case 'weighted': {
      const shares = sharesOf(routing?.weighted?.targets ?? [])
      return (
        <span className="block space-y-1 py-1">
          <ShareBar routing={routing} thin />
          <span className="block truncate text-xs text-ink-soft">
            {shares.map(({ model, share }) => `${model} ${formatPercent(share)}`).join(' · ')}
          </span>
        </span>
      )
    }
    case 'failover':
      return (
        <span className="text-xs text-ink-soft">
          {stagesOf(routing?.failover?.targets ?? [])
            .map(({ models }) => models.join(' or '))
            .join(' → ')}
        </span>
      )
    case 'conditional':
      return (
        <span className="text-xs text-ink-soft">
          {(routing?.conditional?.targets ?? []).map(({ model }) => model).join(', ')}
        </span>
      )
    case undefined:
      return null
  }
}
