import { ArrowDown, ArrowRight } from 'lucide-react'
import { classNames } from '../../../components/class-names.ts'
import { formatNumber, formatPercent } from '../../../format/number.ts'
import { type ConditionalTarget, type Routing, sharesOf, stagesOf, strategyOf } from './routing.ts'

/** Colours of targets, in order; defined in the design tokens of both themes. */
const series = [
  'bg-series-1',
  'bg-series-2',
  'bg-series-3',
  'bg-series-4',
  'bg-series-5',
  'bg-series-6',
  'bg-series-7',
  'bg-series-8',
]

/** How a virtual model selects its target: shares, order or conditions. */
export function RoutingPicture({ routing }: { routing: Routing | undefined }) {
  switch (strategyOf(routing)) {
    case 'weighted':
      return <Shares routing={routing} />
    case 'failover':
      return <Stages routing={routing} />
    case 'conditional':
      return <Conditions targets={routing?.conditional?.targets ?? []} />
    case undefined:
      return <p className="text-sm text-ink-faint">Choose a strategy and its targets below.</p>
  }
}

/** One bar, divided by weight. */
export function ShareBar({ routing, thin = false }: { routing: Routing | undefined; thin?: boolean }) {
  const shares = sharesOf(routing?.weighted?.targets ?? [])
  return (
    <div
      aria-hidden
      className={classNames('flex w-full gap-0.5 overflow-hidden rounded-full', thin ? 'h-2' : 'h-4')}
    >
      {shares.map(({ share }, index) => (
        <div
          key={index}
          className={classNames('h-full min-w-1', series[index % series.length])}
          style={{ flexGrow: share, flexBasis: 0 }}
        />
      ))}
    </div>
  )
}

function Shares({ routing }: { routing: Routing | undefined }) {
  const shares = sharesOf(routing?.weighted?.targets ?? [])
  return (
    <div className="space-y-3">
      <ShareBar routing={routing} />
      <ul className="grid grid-cols-1 gap-x-6 gap-y-1.5 sm:grid-cols-2 lg:grid-cols-3">
        {shares.map(({ model, weight, share }, index) => (
          <li key={index} className="flex min-w-0 items-center gap-2 text-sm">
            <span
              aria-hidden
              className={classNames('size-2.5 shrink-0 rounded-sm', series[index % series.length])}
            />
            <span className="min-w-0 flex-1 truncate font-mono text-xs">{model || 'no model'}</span>
            <span className="tabular font-medium">{formatPercent(share)}</span>
            <span className="text-xs text-ink-faint tabular">weight {formatNumber(weight)}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}

function Stages({ routing }: { routing: Routing | undefined }) {
  const stages = stagesOf(routing?.failover?.targets ?? [])
  return (
    <ol className="flex flex-col gap-2 lg:flex-row lg:flex-wrap lg:items-stretch">
      {stages.map(({ priority, models }, index) => (
        <li key={priority} className="flex flex-col items-center gap-2 lg:flex-row">
          {index > 0 && (
            <span className="flex items-center gap-1 text-xs text-ink-faint lg:flex-col">
              on failure
              <ArrowDown className="size-4 lg:hidden" aria-hidden />
              <ArrowRight className="hidden size-4 lg:block" aria-hidden />
            </span>
          )}
          <div className="h-full w-full min-w-48 rounded-lg border border-line bg-sunken px-3 py-2.5">
            <div className="text-xs text-ink-faint">
              {index === 0 ? 'First' : `Priority ${priority}`}
              {models.length > 1 && ', load shared'}
            </div>
            <ul className="mt-1 space-y-0.5">
              {models.map((model, position) => (
                <li key={position} className="font-mono text-xs break-all">
                  {model || 'no model'}
                </li>
              ))}
            </ul>
          </div>
        </li>
      ))}
    </ol>
  )
}

function Conditions({ targets }: { targets: readonly ConditionalTarget[] }) {
  return (
    <ol className="divide-y divide-line rounded-lg border border-line bg-sunken">
      {targets.map(({ when, model }, index) => (
        <li
          key={index}
          className="grid grid-cols-1 gap-x-3 gap-y-1 px-3 py-2.5 text-sm sm:grid-cols-[4.5rem_minmax(0,1fr)_auto_minmax(6rem,auto)] sm:items-center"
        >
          <span className="text-xs text-ink-faint">
            {when === undefined ? 'otherwise' : index === 0 ? 'if' : 'else if'}
          </span>
          <code className="text-xs break-words">{when ?? ''}</code>
          <ArrowRight className="hidden size-4 text-ink-faint sm:block" aria-hidden />
          <span className="font-mono text-xs break-all">{model || 'no model'}</span>
        </li>
      ))}
    </ol>
  )
}
