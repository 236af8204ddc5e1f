import { Link } from 'wouter'
import type { GatewayState, Listener } from '../../api/state.ts'
import { CopyButton } from '../../components/action/copy-button.tsx'
import { type Column, Table } from '../../components/data/table.tsx'
import { Badge } from '../../components/feedback/badge.tsx'
import { Card } from '../../components/layout/card.tsx'
import { formatNumber } from '../../format/number.ts'
import { formatAgo, formatDateTime } from '../../format/time.ts'

const shownCounts: readonly (readonly [kind: string, one: string, many: string, href: string])[] = [
  ['llm.model', 'model', 'models', '/llm/models'],
  ['llm.virtualModel', 'virtual model', 'virtual models', '/llm/virtual-models'],
  ['llm.apiKey', 'key', 'keys', '/llm/keys'],
  ['mcp.target', 'MCP server', 'MCP servers', '/mcp/servers'],
  ['traffic.route', 'route', 'routes', '/traffic/routes'],
  ['traffic.tcpRoute', 'TCP route', 'TCP routes', '/traffic/tcp-routes'],
]

/** Number of records of each kind, with links to their pages. */
export function Counts({ counts }: { counts: GatewayState['counts'] }) {
  return (
    <ul className="flex flex-wrap gap-2">
      {shownCounts.map(([kind, one, many, href]) => {
        const count = counts[kind] ?? 0
        return (
          <li key={kind}>
            <Link
              href={href}
              className="flex h-8 items-center gap-1.5 rounded-lg border border-line bg-surface px-3 text-sm shadow-card hover:bg-hover"
            >
              <span className="font-semibold tabular">{formatNumber(count)}</span>
              <span className="text-ink-soft">{count === 1 ? one : many}</span>
            </Link>
          </li>
        )
      })}
    </ul>
  )
}

const serves: Record<Listener['serves'][number], string> = {
  llm: 'LLM',
  mcp: 'MCP',
  routes: 'Routes',
  ui: 'Console',
}

const columns: readonly Column<Listener>[] = [
  {
    id: 'url',
    title: 'Address',
    className: 'min-w-52',
    render: ({ url }) => (
      <span className="flex items-center">
        <code className="truncate">{url}</code>
        <CopyButton text={url} label={`Copy ${url}`} />
      </span>
    ),
  },
  { id: 'name', title: 'Listener', className: 'max-w-48 truncate', render: ({ name }) => name },
  {
    id: 'serves',
    title: 'Serves',
    render: (listener) => (
      <span className="flex gap-1">
        {listener.serves.map((one) => (
          <Badge key={one} tone="accent">
            {serves[one]}
          </Badge>
        ))}
      </span>
    ),
  },
  {
    id: 'protocol',
    title: 'Protocol',
    from: 'sm',
    render: ({ protocol, tls }) => (tls && protocol === 'HTTP' ? 'HTTPS' : protocol),
  },
  {
    id: 'connections',
    title: 'Connections',
    numeric: true,
    from: 'sm',
    render: ({ connections }) => formatNumber(connections),
  },
]

/** Ports of the gateway and their connections. */
export function Listeners({ listeners }: { listeners: readonly Listener[] }) {
  return (
    <Card flush title="Listeners" about="Addresses for clients">
      {listeners.length === 0 ? (
        <p className="px-5 pb-5 text-sm text-ink-soft">
          No port is open. Add a model, an MCP server or a gateway with a port.
        </p>
      ) : (
        <Table
          label="Listeners"
          rows={listeners}
          columns={columns}
          keyOf={({ gateway, name, address, port }) => `${gateway}/${name}/${address}:${port}`}
        />
      )}
    </Card>
  )
}

/** Processes that share the database. */
export function Replicas({ replicas }: { replicas: GatewayState['replicas'] }) {
  return (
    <Card title={replicas.length === 1 ? 'Process' : `${replicas.length} replicas`}>
      <ul className="space-y-2 text-sm">
        {replicas.map(({ id, self, startedAt, lastSeen }) => (
          <li key={id} className="flex flex-wrap items-center gap-x-3 gap-y-0.5">
            <span className="size-2 rounded-full bg-good" aria-hidden />
            <code className="min-w-0 flex-1 truncate">{id}</code>
            {self && replicas.length > 1 && <Badge tone="accent">this one</Badge>}
            <span className="text-xs text-ink-faint" title={startedAt && formatDateTime(startedAt)}>
              {startedAt ? `started ${formatAgo(startedAt)}` : lastSeen && `seen ${formatAgo(lastSeen)}`}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}
