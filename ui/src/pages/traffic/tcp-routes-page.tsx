import { ListTree } from 'lucide-react'
import type { ConfigRecord } from '../../api/resources.ts'
import type { Column } from '../../components/data/table.tsx'
import { ResourceList } from '../resources/resource-list.tsx'
import { Texts } from './texts.tsx'
import { backendTexts, gatewaysOf, type RouteValue } from './traffic-values.ts'

const columns: readonly Column<ConfigRecord<RouteValue>>[] = [
  {
    id: 'hosts',
    title: 'Server names',
    from: 'sm',
    render: ({ value }) => <Texts texts={value.hostnames ?? []} none="every connection" />,
  },
  {
    id: 'backends',
    title: 'Goes to',
    render: ({ value }) => <Texts texts={backendTexts(value)} none="nothing" />,
  },
  {
    id: 'gateways',
    title: 'Gateways',
    from: 'md',
    className: 'text-ink-soft',
    render: ({ value }) => <Texts texts={gatewaysOf(value)} none="default" />,
  },
]

/** TCP routes. */
export default function TcpRoutesPage() {
  return (
    <ResourceList<RouteValue>
      kind="traffic.tcpRoute"
      title="TCP routes"
      about="Where connections on TCP and TLS gateways go, by the server name of the handshake."
      noun="TCP route"
      path="/traffic/tcp-routes"
      icon={ListTree}
      columns={columns}
      empty={{
        text: 'TCP routes forward connections of gateways with the protocol TCP or TLS, such as databases.',
      }}
    />
  )
}
