import { Network, Play } from 'lucide-react'
import type { ConfigRecord } from '../../../api/resources.ts'
import { ButtonLink } from '../../../components/action/button.tsx'
import type { Column } from '../../../components/data/table.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { formatNumber } from '../../../format/number.ts'
import { ResourceList } from '../../resources/resource-list.tsx'
import { type McpTarget, useMcpTargets } from '../queries.ts'
import { StateBadge, transportNames } from './state-badge.tsx'
import { transportOf } from './transport.ts'

type Value = Readonly<Record<string, unknown>>

/** MCP servers of the configuration with their live state. */
export default function ServersPage() {
  const live = useMcpTargets()
  const byName = new Map(live.data?.targets.map((target) => [target.name, target]))
  const failed = live.data?.targets.filter(({ state }) => state === 'failed') ?? []
  const liveOf = ({ value }: ConfigRecord<Value>) => byName.get(String(value['name']))
  const count = (name: 'tools' | 'prompts' | 'resources', title: string): Column<ConfigRecord<Value>> => ({
    id: name,
    title,
    numeric: true,
    from: name === 'tools' ? 'sm' : 'md',
    render: (record) => countText(liveOf(record), name),
  })
  return (
    <ResourceList<Value>
      kind="mcp.target"
      title="MCP servers"
      about="Servers behind the MCP endpoint, with the tools, prompts and resources that they offer now."
      noun="server"
      path="/mcp/servers"
      icon={Network}
      actions={
        <ButtonLink icon={Play} href="/mcp/playground">
          Playground
        </ButtonLink>
      }
      empty={{
        text: 'Add a program, a remote server or an HTTP API. Clients then use all of them at one address, with your rules.',
      }}
      columns={[
        { id: 'state', title: 'State', render: (record) => <StateBadge target={liveOf(record)} /> },
        {
          id: 'transport',
          title: 'Transport',
          from: 'md',
          render: ({ value }) => transportNames[transportOf(value)],
        },
        {
          id: 'address',
          title: 'Address',
          from: 'lg',
          className: 'max-w-80',
          render: (record) => (
            <span className="block truncate font-mono text-xs">{liveOf(record)?.address ?? ''}</span>
          ),
        },
        count('tools', 'Tools'),
        count('prompts', 'Prompts'),
        count('resources', 'Resources'),
      ]}
    >
      {live.error && <ErrorState error={live.error} onRetry={() => void live.refetch()} />}
      {failed.length > 0 && <FailedServers targets={failed} />}
    </ResourceList>
  )
}

function countText(target: McpTarget | undefined, name: 'tools' | 'prompts' | 'resources'): string {
  const count = target?.[name]
  return count === undefined ? '–' : formatNumber(count)
}

function FailedServers({ targets }: { targets: readonly McpTarget[] }) {
  const [first] = targets
  const title =
    targets.length === 1 ? `${first?.name} does not answer` : `${targets.length} servers do not answer`
  return (
    <Notice
      tone="warn"
      title={title}
      action={
        first && (
          <ButtonLink size="small" href={`/mcp/servers/${encodeURIComponent(first.name)}`}>
            Show the cause
          </ButtonLink>
        )
      }
    >
      {first?.error}
    </Notice>
  )
}
