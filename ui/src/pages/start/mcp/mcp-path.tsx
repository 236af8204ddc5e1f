import type { GatewayState } from '../../../api/state.ts'
import { useSucceeded } from '../../../api/succeeded.ts'
import { GuidedPath } from '../guided-path.tsx'
import { ServerStep } from './server-step.tsx'
import { ToolsStep } from './tools-step.tsx'

/** Server, live tools, first call of a tool. */
export function McpPath({ state }: { state: GatewayState | undefined }) {
  const succeeded = useSucceeded('mcp')
  const count = state?.counts['mcp.target'] ?? 0
  const loaded = state !== undefined && succeeded !== undefined
  return (
    <GuidedPath
      label="First MCP server"
      steps={[
        {
          id: 'server',
          title: 'Add a server',
          done: loaded ? count > 0 : undefined,
          about:
            count > 0
              ? `${count} server${count === 1 ? '' : 's'}`
              : 'A program on this machine, or the address of a remote server.',
          render: (next) => <ServerStep onDone={next} />,
        },
        {
          id: 'tools',
          title: 'Call a tool',
          done: loaded ? succeeded === 'yes' : undefined,
          about:
            succeeded === 'yes'
              ? 'Tool calls have succeeded.'
              : 'Live tools of the servers, as a client sees them.',
          render: () => <ToolsStep state={state} />,
        },
      ]}
    />
  )
}
