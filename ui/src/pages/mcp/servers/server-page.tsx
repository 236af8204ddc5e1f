import { RotateCw, ServerOff, Settings } from 'lucide-react'
import { useParams, useSearchParams } from 'wouter'
import { useRecord } from '../../../api/resources.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { Facts } from '../../../components/data/facts.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { Tabs } from '../../../components/layout/tabs.tsx'
import { formatDateTime } from '../../../format/time.ts'
import { type McpTargetDetails, useMcpTarget, useRefreshMcpTarget } from '../queries.ts'
import { ItemList } from './item-list.tsx'
import { StateBadge, transportNames } from './state-badge.tsx'

/** One MCP server: what it offers now. */
export default function ServerPage() {
  const { id = '' } = useParams()
  // Addresses have ids or names; sessions have names.
  const record = useRecord('mcp.target', id)
  const name = record.data ? String(record.data.value['name']) : record.error ? id : undefined
  const details = useMcpTarget(name)
  const refresh = useRefreshMcpTarget(name ?? id)
  const { data } = details
  return (
    <Page
      title={name ?? 'Server'}
      about="Tools, prompts and resources of the server, read in a session of the gateway without rules."
      actions={
        <>
          <Button icon={RotateCw} busy={refresh.isPending} onClick={() => refresh.mutate()}>
            Check now
          </Button>
          <ButtonLink icon={Settings} href={`/mcp/servers/${encodeURIComponent(id)}/settings`}>
            Settings
          </ButtonLink>
        </>
      }
    >
      {details.error && !data && (
        <MissingServer error={details.error} onRetry={() => void details.refetch()} />
      )}
      {refresh.error && <ErrorState error={refresh.error} />}
      {!data && !details.error && (
        <Card>
          <SkeletonLines count={6} />
        </Card>
      )}
      {data && <Details details={data} />}
    </Page>
  )
}

function MissingServer({ error, onRetry }: { error: unknown; onRetry(): void }) {
  return (
    <div className="space-y-4">
      <ErrorState error={error} onRetry={onRetry} />
      <EmptyState
        icon={ServerOff}
        title="This server is not active"
        action={<ButtonLink href="/mcp/servers">All servers</ButtonLink>}
      >
        It may have been removed or renamed, or its configuration is not applied yet.
      </EmptyState>
    </div>
  )
}

function Details({ details }: { details: McpTargetDetails }) {
  const { serverInfo = {}, instructions } = details
  return (
    <>
      <Card>
        <Facts
          facts={[
            ['State', <StateBadge key="state" target={details} />],
            ['Transport', transportNames[details.transport]],
            [
              'Address',
              <span key="address" className="font-mono text-xs">
                {details.address}
              </span>,
            ],
            [
              'Server',
              [serverInfo['title'] ?? serverInfo['name'], serverInfo['version']].filter(isText).join(' '),
            ],
            ['Protocol revision', details.protocolVersion],
            ['Checked', details.lastSeen && formatDateTime(details.lastSeen)],
          ]}
        />
        {instructions && (
          <details className="mt-4 border-t border-line pt-3">
            <summary className="cursor-pointer text-sm text-ink-soft">Instructions for models</summary>
            <bdi className="mt-2 block max-w-prose text-sm break-words whitespace-pre-wrap text-ink-soft">
              {instructions}
            </bdi>
          </details>
        )}
      </Card>
      {details.state === 'failed' && (
        <Notice tone="bad" title="The server does not answer">
          {details.error}
        </Notice>
      )}
      {details.state === 'pending' && (
        <Notice title="The session is being opened. Programs may take a while." />
      )}
      {details.state === 'connected' && <Lists details={details} />}
    </>
  )
}

function Lists({ details }: { details: McpTargetDetails }) {
  const [parameters, setParameters] = useSearchParams()
  const { tools = [], prompts = [], resources = [], resourceTemplates = [] } = details
  const all = [...resources, ...resourceTemplates]
  const tab = parameters.get('list') ?? 'tools'
  return (
    <Tabs
      label="Lists"
      value={tab}
      onChange={(next) => setParameters({ list: next }, { replace: true })}
      tabs={[
        {
          value: 'tools',
          label: `Tools ${tools.length}`,
          content: <ItemList kind="tool" items={tools} server={details.name} />,
        },
        {
          value: 'prompts',
          label: `Prompts ${prompts.length}`,
          content: <ItemList kind="prompt" items={prompts} server={details.name} />,
        },
        {
          value: 'resources',
          label: `Resources ${all.length}`,
          content: <ItemList kind="resource" items={all} server={details.name} />,
        },
      ]}
    />
  )
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
