import { Lock, Signpost, Waypoints } from 'lucide-react'
import type { ConfigRecord } from '../../api/resources.ts'
import { ButtonLink } from '../../components/action/button.tsx'
import type { Column } from '../../components/data/table.tsx'
import { ResourceList } from '../resources/resource-list.tsx'
import { OpenListeners } from './listeners/open-listeners.tsx'
import type { GatewayValue } from './traffic-values.ts'

const columns: readonly Column<ConfigRecord<GatewayValue>>[] = [
  { id: 'port', title: 'Port', sort: 'port', numeric: true, render: ({ value }) => value.port },
  {
    id: 'protocol',
    title: 'Protocol',
    sort: 'protocol',
    from: 'sm',
    render: ({ value }) => (
      <span className="inline-flex items-center gap-1.5">
        {value.protocol ?? (value.tls ? 'HTTPS' : 'HTTP')}
        {value.tls && <Lock className="size-3.5 text-good" role="img" aria-label="TLS" />}
      </span>
    ),
  },
  {
    id: 'listeners',
    title: 'Listeners',
    from: 'md',
    className: 'max-w-md truncate text-ink-soft',
    render: ({ value }) =>
      value.listeners === undefined
        ? 'one, for every host'
        : value.listeners
            .map(({ name, hostname }, index) => `${name ?? index}${hostname ? ` (${hostname})` : ''}`)
            .join(', '),
  },
]

/** Gateways with their ports, and the listeners that are open. */
export default function GatewaysPage() {
  return (
    <ResourceList<GatewayValue>
      kind="traffic.gateway"
      title="Gateways"
      about="Ports that clients connect to. Routes, models, MCP servers and this console attach to them."
      noun="gateway"
      path="/traffic/gateways"
      icon={Waypoints}
      columns={columns}
      actions={
        <ButtonLink icon={Signpost} href="/traffic/explain">
          Where would it go?
        </ButtonLink>
      }
      empty={{ text: 'A gateway named default receives everything that names no other gateway.' }}
    >
      <OpenListeners />
    </ResourceList>
  )
}
