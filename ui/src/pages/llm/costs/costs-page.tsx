import { CircleDollarSign, Plus, Upload } from 'lucide-react'
import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { type CatalogSource, type CostPage, type ListedPrice, useCosts } from '../../../api/llm/costs.ts'
import { useMayChange } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { Pager } from '../../../components/data/pager.tsx'
import { type Column, Table } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Tooltip } from '../../../components/feedback/tooltip.tsx'
import { SearchInput } from '../../../components/form/search-input.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { formatCompact } from '../../../format/number.ts'
import { useListAddress } from '../../resources/list-address.ts'
import type { ModelPlace } from './catalog-edit.ts'
import { ImportDialog } from './import-dialog.tsx'
import { PriceDialog } from './price-dialog.tsx'
import { PriceText } from './price-text.tsx'
import { sourceText } from './source.ts'
import { UnpricedModels } from './unpriced-models.tsx'

const pageSize = 50

/** Effective prices of models, their source, and models that were used without a price. */
export default function CostsPage() {
  const mayChange = useMayChange()
  const address = useListAddress('')
  const [parameters, setParameters] = useSearchParams()
  const [editing, setEditing] = useState<{ place: ModelPlace | undefined; price: ListedPrice | undefined }>()
  const [importing, setImporting] = useState(false)
  const { search, cursor } = address
  const provider = parameters.get('provider') ?? undefined
  const source = parameters.get('source') ?? undefined
  const costs = useCosts({ search, provider, source, cursor, limit: pageSize })
  const { data } = costs
  const filtered = search !== '' || provider !== undefined || source !== undefined
  const filter = (name: string, value: string) =>
    setParameters(
      (current) => {
        const next = new URLSearchParams(current)
        next.delete('cursor')
        if (value === '') next.delete(name)
        else next.set(name, value)
        return next
      },
      { replace: true },
    )
  const newPrice = () => setEditing({ place: undefined, price: undefined })
  return (
    <Page
      title="Costs"
      about="Prices that the cost of each call is computed with, in US dollars per million tokens."
      actions={
        mayChange && (
          <>
            <Button icon={Upload} onClick={() => setImporting(true)}>
              Import price list
            </Button>
            <Button tone="primary" icon={Plus} onClick={newPrice}>
              New price
            </Button>
          </>
        )
      }
    >
      <UnpricedModels
        onSetPrice={mayChange ? (place) => setEditing({ place, price: undefined }) : undefined}
      />
      {costs.error && !data ? (
        <ErrorState error={costs.error} onRetry={() => void costs.refetch()} />
      ) : (
        <Card flush>
          <div className="flex flex-wrap items-center gap-3 px-4 py-3 sm:px-5">
            <SearchInput
              label="Search prices"
              placeholder="Provider or model"
              value={search}
              onChange={address.setSearch}
            />
            <div className="w-44">
              <Select
                aria-label="Provider"
                value={provider ?? ''}
                options={[
                  { value: '', label: 'All providers' },
                  ...(data?.providers ?? []).map((name) => ({ value: name, label: name })),
                ]}
                onChange={(value) => filter('provider', value)}
              />
            </div>
            <div className="w-44">
              <Select
                aria-label="Source"
                value={source ?? ''}
                options={[{ value: '', label: 'All sources' }, ...sourceOptions(data?.catalogs ?? [])]}
                onChange={(value) => filter('source', value)}
              />
            </div>
          </div>
          {data === undefined ? (
            <div className="px-5 pb-5">
              <SkeletonLines count={8} />
            </div>
          ) : data.models.length === 0 ? (
            <NoPrices
              filtered={filtered}
              onClear={() => setParameters(new URLSearchParams(), { replace: true })}
              onImport={mayChange ? () => setImporting(true) : undefined}
            />
          ) : (
            <>
              <Table
                label="Prices"
                columns={columnsOf(data)}
                rows={data.models}
                keyOf={({ provider: kind, model }) => `${kind}/${model}`}
                onOpen={(price) => setEditing({ place: price, price })}
                busy={costs.isPlaceholderData}
              />
              <Pager
                shown={data.models.length}
                total={data.total}
                onPrevious={address.previous}
                onNext={data.nextCursor === undefined ? undefined : () => address.next(data.nextCursor ?? '')}
              />
            </>
          )}
        </Card>
      )}
      {data && data.catalogs.length > 0 && <Catalogs catalogs={data.catalogs} />}
      {editing && (
        <PriceDialog {...editing} catalogs={data?.catalogs ?? []} onClose={() => setEditing(undefined)} />
      )}
      {importing && <ImportDialog onClose={() => setImporting(false)} />}
    </Page>
  )

  function columnsOf({ catalogs }: CostPage): readonly Column<ListedPrice>[] {
    return [
      {
        id: 'model',
        title: 'Model',
        className: 'max-w-96',
        render: (price) => (
          <button
            type="button"
            className="block max-w-full truncate text-left font-mono text-xs font-medium hover:underline"
            onClick={() => setEditing({ place: price, price })}
          >
            {price.model}
          </button>
        ),
      },
      {
        id: 'provider',
        title: 'Provider',
        from: 'sm',
        render: ({ provider: kind }) => <Badge>{kind}</Badge>,
      },
      {
        id: 'input',
        title: 'Input',
        numeric: true,
        render: ({ rates }) => <PriceText price={rates?.input} />,
      },
      {
        id: 'output',
        title: 'Output',
        numeric: true,
        render: ({ rates }) => <PriceText price={rates?.output} />,
      },
      {
        id: 'cached',
        title: 'Cached input',
        numeric: true,
        from: 'lg',
        render: ({ rates }) => <PriceText price={rates?.cacheRead} absent="as input" />,
      },
      {
        id: 'context',
        title: 'Context',
        numeric: true,
        from: 'xl',
        render: ({ limits, tiers }) => (
          <>
            {limits?.contextWindow !== undefined && formatCompact(limits.contextWindow)}
            {tiers !== undefined && tiers.length > 0 && (
              <span className="ml-2">
                <Badge tone="info">tiers</Badge>
              </span>
            )}
          </>
        ),
      },
      {
        id: 'source',
        title: 'Source',
        from: 'md',
        render: ({ sources }) => <SourceBadges catalogs={catalogs} indexes={Object.values(sources)} />,
      },
    ]
  }
}

function SourceBadges({
  catalogs,
  indexes,
}: {
  catalogs: readonly CatalogSource[]
  indexes: readonly number[]
}) {
  return (
    <span className="flex flex-wrap gap-1">
      {[...new Set(indexes)].sort().map((index) => {
        const catalog = catalogs[index]
        return (
          catalog && (
            <Tooltip key={index} text={sourceText(catalog)}>
              <span tabIndex={-1}>
                <Badge tone={catalog.source === 'custom' ? 'accent' : 'neutral'}>{catalog.source}</Badge>
              </span>
            </Tooltip>
          )
        )
      })}
    </span>
  )
}

function sourceOptions(catalogs: readonly CatalogSource[]) {
  return [...new Set(catalogs.map(({ source }) => source))].map((source) => ({
    value: source,
    label: source === 'custom' ? 'Custom prices' : `${source} catalog`,
  }))
}

function NoPrices({
  filtered,
  onClear,
  onImport,
}: {
  filtered: boolean
  onClear(): void
  onImport: (() => void) | undefined
}) {
  return filtered ? (
    <EmptyState
      icon={CircleDollarSign}
      title="No price matches"
      action={<Button onClick={onClear}>Clear search and filters</Button>}
    />
  ) : (
    <EmptyState
      icon={CircleDollarSign}
      title="No prices yet"
      action={
        onImport && (
          <Button icon={Upload} onClick={onImport}>
            Import price list
          </Button>
        )
      }
    >
      Without prices, all costs and budgets in dollars are 0. Import a public list, or enter those of your
      contracts.
    </EmptyState>
  )
}

/** The catalogs in the order in which they apply. */
function Catalogs({ catalogs }: { catalogs: readonly CatalogSource[] }) {
  return (
    <Card title="Catalogs" about="Later catalogs override earlier ones, each price on its own.">
      <ol className="space-y-1.5 text-sm">
        {catalogs.map((catalog, index) => (
          <li key={index} className="flex items-baseline gap-3">
            <span className="w-5 text-right text-xs text-ink-faint tabular">{index + 1}</span>
            <span className="min-w-0 flex-1 break-words">{sourceText(catalog)}</span>
            <span className="text-xs text-ink-soft tabular">
              {formatCompact(catalog.models)} {catalog.models === 1 ? 'model' : 'models'} in effect
            </span>
          </li>
        ))}
      </ol>
    </Card>
  )
}
