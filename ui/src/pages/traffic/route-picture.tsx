import { ArrowRight } from 'lucide-react'
import type { ReactNode } from 'react'
import { Card } from '../../components/layout/card.tsx'
import { labelOf } from '../../schema-form/model/label.ts'
import { backendTexts, gatewaysOf, matchText, type RouteValue } from './traffic-values.ts'

/** The way of a request: gateway, condition, policies, destination. It follows the form below. */
export function RoutePicture({ route }: { route: RouteValue }) {
  const policies = Object.entries(route.policies ?? {}).filter(([, value]) => value !== undefined)
  const matches = (route.matches ?? [{}]).map(matchText)
  const hosts = route.hostnames ?? []
  return (
    <Card title="Way of a request">
      <ol className="flex flex-col gap-2 text-sm lg:flex-row lg:items-stretch">
        <Step title="Gateway" texts={gatewaysOf(route)} />
        <Step title="Matches" texts={[...(hosts.length === 0 ? ['every host'] : hosts), ...matches]} code />
        <Step
          title="Policies"
          texts={policies.map(([name]) => labelOf(name))}
          none="only those of the gateway"
        />
        <Step title="Goes to" texts={backendTexts(route)} none="nothing: 404" last />
      </ol>
    </Card>
  )
}

const shown = 5

function Step({
  title,
  texts,
  none,
  code = false,
  last = false,
}: {
  title: string
  texts: readonly string[]
  none?: string
  code?: boolean
  last?: boolean
}) {
  const lines: readonly ReactNode[] = texts.slice(0, shown)
  return (
    <li className="flex min-w-0 flex-1 flex-col gap-2 lg:flex-row lg:items-center">
      <div className="min-w-0 flex-1 self-stretch rounded-lg border border-line bg-sunken px-3 py-2.5">
        <div className="text-xs text-ink-faint">{title}</div>
        {texts.length === 0 ? (
          <div className="text-ink-soft">{none}</div>
        ) : (
          <ul className={code ? 'font-mono text-xs leading-relaxed' : ''}>
            {lines.map((line, index) => (
              <li key={index} className="truncate">
                {line}
              </li>
            ))}
            {texts.length > shown && <li className="text-ink-faint">and {texts.length - shown} more</li>}
          </ul>
        )}
      </div>
      {!last && (
        <ArrowRight className="size-4 shrink-0 self-center text-ink-faint max-lg:rotate-90" aria-hidden />
      )}
    </li>
  )
}
