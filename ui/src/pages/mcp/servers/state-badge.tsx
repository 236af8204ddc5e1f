import { Badge } from '../../../components/feedback/badge.tsx'
import { Tooltip } from '../../../components/feedback/tooltip.tsx'
import { formatAgo } from '../../../format/time.ts'
import type { McpTarget } from '../queries.ts'

const looks = {
  connected: { tone: 'good', text: 'Connected' },
  failed: { tone: 'bad', text: 'Failed' },
  pending: { tone: 'info', text: 'Connecting' },
} as const

/** Outcome of the latest session of the gateway at a server. */
export function StateBadge({
  target,
}: {
  target: Pick<McpTarget, 'state' | 'error' | 'lastSeen'> | undefined
}) {
  if (target === undefined) return <span className="text-ink-faint">unknown</span>
  const { tone, text } = looks[target.state]
  const seen = target.lastSeen === undefined ? '' : ` Checked ${formatAgo(target.lastSeen)}.`
  return (
    <Tooltip
      text={`${target.error ?? (target.state === 'pending' ? 'A session is being opened.' : 'The server answers.')}${seen}`}
    >
      <span tabIndex={-1}>
        <Badge tone={tone} dot>
          {text}
        </Badge>
      </span>
    </Tooltip>
  )
}

export const transportNames = {
  stdio: 'Program',
  mcp: 'Streamable HTTP',
  sse: 'HTTP + SSE',
  openapi: 'OpenAPI',
} as const
