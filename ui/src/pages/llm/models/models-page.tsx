import { FlaskConical } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import type { ListedPrice } from '../../../api/llm/costs.ts'
import { type ConfigRecord, useRecords } from '../../../api/resources.ts'
import { Button } from '../../../components/action/button.tsx'
import type { Column } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatCompact, formatPercent } from '../../../format/number.ts'
import { useListAddress } from '../../resources/list-address.ts'
import { ResourceList } from '../../resources/resource-list.tsx'
import { type ModelValue, type ProviderValue, providerKindOf } from './model.ts'
import { type ModelUse, useModelUse, usePrices, useSharedProviders } from './model-facts.ts'
import { TestCall } from './test-call.tsx'

/** Models that clients may request, with provider, price and use of the last day. */
export default function ModelsPage() {
  const [tested, setTested] = useState<string>()
  const { search, sort, cursor } = useListAddress()
  const { data } = useRecords<ModelValue>('llm.model', { search, sort, cursor })
  const shared = useSharedProviders()
  const priceOf = usePrices(data?.resources ?? [], shared)
  const usageOf = useModelUse()
  return (
    <>
      <ResourceList<ModelValue>
        kind="llm.model"
        title="Models"
        about="Names that clients request, and the provider and model that serves each."
        noun="model"
        path="/llm/models"
        empty={{
          text: 'A model maps a name to a provider. Clients use it through the OpenAI or Anthropic API.',
        }}
        columns={columnsOf({ shared, priceOf, usageOf, onTest: setTested })}
      />
      {tested !== undefined && <TestCall model={tested} onClose={() => setTested(undefined)} />}
    </>
  )
}

type Parts = {
  readonly shared: ReadonlyMap<string, ProviderValue>
  priceOf(value: ModelValue): ListedPrice | undefined
  readonly usageOf: ((name: string) => ModelUse) | undefined
  onTest(model: string): void
}

function columnsOf({ shared, priceOf, usageOf, onTest }: Parts): readonly Column<ConfigRecord<ModelValue>>[] {
  return [
    {
      id: 'provider',
      title: 'Provider',
      className: 'max-w-56',
      render: ({ value }) => <Provider value={value} shared={shared} />,
    },
    {
      id: 'upstream',
      title: 'Served model',
      from: 'lg',
      className: 'max-w-64',
      render: ({ value }) => (
        <span className="flex min-w-0 items-center gap-2">
          <span className="truncate font-mono text-xs text-ink-soft">
            {value.params?.model ?? 'as requested'}
          </span>
          {value.visibility === 'internal' && <Badge>internal</Badge>}
        </span>
      ),
    },
    {
      id: 'price',
      title: 'Price per M tokens',
      numeric: true,
      from: 'md',
      className: 'whitespace-nowrap',
      render: ({ value }) => <Price price={priceOf(value)} />,
    },
    ...(usageOf === undefined ? [] : usageColumns(usageOf)),
    {
      id: 'test',
      title: 'Test',
      from: 'sm',
      className: 'w-20 text-right',
      render: ({ value }) =>
        value.visibility === 'internal' ? null : (
          <Button size="small" icon={FlaskConical} onClick={() => onTest(value.name)}>
            Test
          </Button>
        ),
    },
  ]
}

function usageColumns(usageOf: (name: string) => ModelUse): readonly Column<ConfigRecord<ModelValue>>[] {
  return [
    {
      id: 'requests',
      title: 'Requests, 24 h',
      numeric: true,
      from: 'lg',
      render: ({ value }) => {
        const { requests, errors } = usageOf(value.name)
        return (
          <>
            {formatCompact(requests)}
            {errors > 0 && (
              <span className="ml-1.5 text-xs text-bad">{formatPercent(errors / requests)} errors</span>
            )}
          </>
        )
      },
    },
    {
      id: 'cost',
      title: 'Cost, 24 h',
      numeric: true,
      from: 'xl',
      render: ({ value }) => formatMoney(usageOf(value.name).cost),
    },
  ]
}

function Provider({ value, shared }: { value: ModelValue; shared: Parts['shared'] }) {
  const { provider } = value
  if (typeof provider === 'string') return <Badge>{provider}</Badge>
  const kind = providerKindOf(value, shared)
  return (
    <span className="flex min-w-0 items-center gap-2">
      <Link
        href={`/llm/providers/${encodeURIComponent(provider.reference)}`}
        className="truncate hover:underline"
      >
        {provider.reference}
      </Link>
      {kind !== undefined && <Badge>{kind}</Badge>}
    </span>
  )
}

function Price({ price }: { price: ListedPrice | undefined }) {
  const { input, output } = price?.rates ?? {}
  if (input === undefined && output === undefined) return <span className="text-ink-faint">no price</span>
  return (
    <>
      {input === undefined ? '?' : formatMoney(Number(input))}
      <span className="text-ink-faint"> in, </span>
      {output === undefined ? '?' : formatMoney(Number(output))}
      <span className="text-ink-faint"> out</span>
    </>
  )
}
