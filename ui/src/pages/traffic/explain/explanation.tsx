import { ArrowDown, CircleSlash, Flag } from 'lucide-react'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { OtherRoute, RouteExplanation } from '../../../api/tools/explain-route.ts'
import { type Column, Table } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { labelOf } from '../../../schema-form/model/label.ts'

type Row = OtherRoute & { readonly index: number }

const columns: readonly Column<Row>[] = [
  {
    id: 'route',
    title: 'Route',
    className: 'font-medium',
    render: ({ route }) =>
      isOwn(route) ? (
        <Link href={routeAddress(route)} className="hover:underline">
          {route}
        </Link>
      ) : (
        route
      ),
  },
  {
    id: 'match',
    title: 'Match',
    from: 'sm',
    render: ({ match }) => <code className="text-xs">{match}</code>,
  },
  {
    id: 'host',
    title: 'Host',
    from: 'md',
    render: ({ hostname }) => <code className="text-xs">{hostname}</code>,
  },
  { id: 'reason', title: 'Why not', render: ({ reason }) => reason },
]

/** The way of the request as steps, and the routes that lose. */
export function Explanation({ explanation }: { explanation: RouteExplanation }) {
  const { listener, route, policies, backend, others } = explanation
  return (
    <>
      <Card title="Way of the request">
        <ol className="space-y-2">
          <Step title="Listener" badge={listener.tls ? 'TLS' : listener.protocol}>
            <b className="font-medium">{listener.name}</b> on port {listener.port}
          </Step>
          <Step title="Route" badge={route === undefined ? undefined : route.match}>
            {route === undefined ? (
              <>No route matches {explanation.path}. After the policies below, the reply is 404.</>
            ) : isOwn(route.name) ? (
              <Link href={routeAddress(route.name)} className="font-medium text-accent hover:underline">
                {route.name}
              </Link>
            ) : (
              <b className="font-medium">{names[route.name] ?? route.name}</b>
            )}
            {route !== undefined && route.hostname !== '*' && (
              <span className="text-ink-soft"> for {route.hostname}</span>
            )}
          </Step>
          <Step title={`Policies (${policies.length})`}>
            {policies.length === 0 ? (
              <span className="text-ink-soft">none</span>
            ) : (
              <span className="flex flex-wrap gap-1.5">
                {policies.map((policy, index) => (
                  <Badge key={index}>
                    {index + 1}. {policy}
                  </Badge>
                ))}
              </span>
            )}
          </Step>
          <Step title="Goes to" last icon={route === undefined ? CircleSlash : Flag}>
            {backend === undefined ? (
              <span className="text-ink-soft">nothing</span>
            ) : backend.targets.length === 0 ? (
              (destinations[backend.kind] ?? 'a reply of the route itself')
            ) : (
              <ul className="font-mono text-xs leading-relaxed">
                {backend.targets.map((target, index) => (
                  <li key={index} className="break-words">
                    {target}
                  </li>
                ))}
              </ul>
            )}
            {backend !== undefined && backend.settings.length > 0 && (
              <div className="text-xs text-ink-soft">with {backend.settings.map(labelOf).join(', ')}</div>
            )}
          </Step>
        </ol>
      </Card>
      <Card title="Other routes" about="The closest first, with the first condition that fails." flush>
        {others.length === 0 ? (
          <EmptyState icon={CircleSlash} title="No other route comes close" />
        ) : (
          <Table
            label="Other routes"
            columns={columns}
            rows={others.map((other, index) => ({ ...other, index }))}
            keyOf={({ index }) => String(index)}
          />
        )}
      </Card>
    </>
  )
}

/** Sections that are not records of the kind of routes. */
const names: Readonly<Record<string, string>> = {
  llm: 'LLM models',
  mcp: 'MCP servers',
  ui: 'this console',
}

const destinations: Readonly<Record<string, string>> = {
  llm: 'the provider of the requested model',
  mcp: 'the MCP servers',
  ui: 'the console and its API',
}

function isOwn(route: string): boolean {
  return names[route] === undefined && !/^route-\d+$/.test(route)
}

function routeAddress(route: string): string {
  return `/traffic/routes/${encodeURIComponent(route)}`
}

function Step({
  title,
  badge,
  icon: Icon = ArrowDown,
  last = false,
  children,
}: {
  title: string
  badge?: string | undefined
  icon?: typeof ArrowDown
  last?: boolean
  children: ReactNode
}) {
  return (
    <li className="flex gap-3">
      <span
        className="mt-0.5 grid size-7 shrink-0 place-items-center rounded-full border border-line bg-sunken text-ink-faint"
        aria-hidden
      >
        <Icon className="size-3.5" />
      </span>
      <div className={last ? 'min-w-0 flex-1' : 'min-w-0 flex-1 border-b border-line pb-3'}>
        <div className="flex flex-wrap items-center gap-2 text-xs text-ink-faint">
          {title}
          {badge !== undefined && <span className="font-mono">{badge}</span>}
        </div>
        <div className="text-sm break-words">{children}</div>
      </div>
    </li>
  )
}
