import { Lock } from 'lucide-react'
import type { Listener } from '../../../api/state.ts'
import { type Column, Table } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { formatNumber } from '../../../format/number.ts'

const purposes: Readonly<Record<string, string>> = {
  llm: 'LLM',
  mcp: 'MCP',
  routes: 'routes',
  tcpRoutes: 'TCP routes',
  ui: 'console',
}

const columns: readonly Column<Listener>[] = [
  {
    id: 'name',
    title: 'Listener',
    className: 'font-medium whitespace-nowrap',
    render: ({ name }) => name,
  },
  {
    id: 'address',
    title: 'Address',
    className: 'whitespace-nowrap',
    render: ({ address, port }) => (
      <code className="text-xs">
        {address.includes(':') ? `[${address}]` : address}:{port}
      </code>
    ),
  },
  {
    id: 'protocol',
    title: 'Protocol',
    from: 'sm',
    render: ({ protocol, tls }) => (
      <span className="inline-flex items-center gap-1.5">
        {protocol}
        {tls && <Lock className="size-3.5 text-good" role="img" aria-label="TLS" />}
      </span>
    ),
  },
  {
    id: 'serves',
    title: 'Serves',
    render: ({ serves }) =>
      serves.length === 0 ? (
        <span className="text-ink-faint">nothing</span>
      ) : (
        <span className="flex flex-wrap gap-1">
          {serves.map((purpose) => (
            <Badge key={purpose} tone="accent">
              {purposes[purpose] ?? purpose}
            </Badge>
          ))}
        </span>
      ),
  },
  {
    id: 'connections',
    title: 'Connections',
    numeric: true,
    from: 'md',
    render: ({ connections }) => formatNumber(connections),
  },
]

/** Ports that are open now. */
export function ListenerTable({ listeners }: { listeners: readonly Listener[] }) {
  return (
    <Table
      label="Open listeners"
      columns={columns}
      rows={listeners}
      keyOf={({ name, port }) => `${name} ${port}`}
    />
  )
}
