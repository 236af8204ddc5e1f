import { Route, Signpost } from 'lucide-react'
import type { ConfigRecord } from '../../api/resources.ts'
import { ButtonLink } from '../../components/action/button.tsx'
import type { Column } from '../../components/data/table.tsx'
import { ResourceList } from '../resources/resource-list.tsx'
import { Texts } from './texts.tsx'
import { backendTexts, gatewaysOf, matchText, type RouteValue } from './traffic-values.ts'

const columns: readonly Column<ConfigRecord<RouteValue>>[] = [
  {
    id: 'hosts',
    title: 'Hosts',
    from: 'sm',
    render: ({ value }) => <Texts texts={value.hostnames ?? []} none="every host" />,
  },
  {
    id: 'matches',
    title: 'Matches',
    render: ({ value }) => <Texts code texts={(value.matches ?? [{}]).map(matchText)} none="/*" />,
  },
  {
    id: 'backends',
    title: 'Goes to',
    from: 'md',
    render: ({ value }) => <Texts texts={backendTexts(value)} none="nothing: 404" />,
  },
  {
    id: 'gateways',
    title: 'Gateways',
    from: 'lg',
    className: 'text-ink-soft',
    render: ({ value }) => <Texts texts={gatewaysOf(value)} none="default" />,
  },
]

/** HTTP routes. */
export default function RoutesPage() {
  return (
    <ResourceList<RouteValue>
      kind="traffic.route"
      title="Routes"
      about="Where HTTP requests on gateways go, by host, path, method, headers and query. The most specific match wins."
      noun="route"
      path="/traffic/routes"
      icon={Route}
      columns={columns}
      actions={
        <ButtonLink icon={Signpost} href="/traffic/explain">
          Where would it go?
        </ButtonLink>
      }
      empty={{
        text: 'A route forwards requests to servers, model providers or MCP servers, or responds itself.',
      }}
    />
  )
}
