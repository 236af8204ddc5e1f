import { useSearchParams } from 'wouter'
import { Facts } from '../../../components/data/facts.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Tabs } from '../../../components/layout/tabs.tsx'
import { Activity } from './panels/activity.tsx'
import { PromptPanel } from './panels/prompt-panel.tsx'
import { ResourcePanel } from './panels/resource-panel.tsx'
import { ToolPanel } from './panels/tool-panel.tsx'
import { useMcpSession } from './use-session.ts'

const kinds = ['tool', 'prompt', 'resource'] as const
type ItemKind = (typeof kinds)[number]

/** The open session: lists at the left, the chosen item, and the activity below. */
export function Workspace() {
  const { state } = useMcpSession()
  const [parameters, setParameters] = useSearchParams()
  const kind: ItemKind = kinds.find((one) => parameters.has(one)) ?? 'tool'
  const chosen = parameters.get(kind) ?? ''
  const choose = (next: ItemKind) => (name: string) => setParameters({ [next]: name }, { replace: true })
  const { lists, server, endpoint } = state
  const info = server?.serverInfo ?? {}
  const resources = [...lists.resources, ...lists.resourceTemplates]
  return (
    <>
      <Card>
        <Facts
          facts={[
            ['Server', [info['title'] ?? info['name'], info['version']].filter(isText).join(' ')],
            ['Protocol revision', server?.protocolVersion],
            ['Endpoint', `${endpoint?.gateway}: ${endpoint?.path}`],
            ['Login', endpoint?.credential ? 'token or key' : 'none'],
          ]}
        />
      </Card>
      <Tabs
        label="Lists"
        value={kind}
        onChange={(next) => setParameters({ [next]: '' }, { replace: true })}
        tabs={[
          {
            value: 'tool',
            label: `Tools ${lists.tools.length}`,
            content: <ToolPanel tools={lists.tools} chosen={chosen} onChoose={choose('tool')} />,
          },
          {
            value: 'prompt',
            label: `Prompts ${lists.prompts.length}`,
            content: <PromptPanel prompts={lists.prompts} chosen={chosen} onChoose={choose('prompt')} />,
          },
          {
            value: 'resource',
            label: `Resources ${resources.length}`,
            content: <ResourcePanel resources={resources} chosen={chosen} onChoose={choose('resource')} />,
          },
        ]}
      />
      <Activity />
    </>
  )
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
