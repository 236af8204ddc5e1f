import { type UseQueryResult, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../api/client.ts'

export type Transport = 'stdio' | 'mcp' | 'sse' | 'openapi'

/** An MCP server with the outcome of the latest session of the gateway. */
export type McpTarget = {
  readonly name: string
  readonly transport: Transport
  readonly address?: string
  readonly state: 'connected' | 'failed' | 'pending'
  readonly error?: string
  /** RFC 3339. */
  readonly lastSeen?: string
  readonly tools?: number
  readonly prompts?: number
  readonly resources?: number
}

/** JSON that a server sent: members may be missing or have any form. */
export type McpItem = Readonly<Record<string, unknown>>

export type McpTargetDetails = Omit<McpTarget, 'tools' | 'prompts' | 'resources'> & {
  readonly protocolVersion?: string
  readonly serverInfo?: McpItem
  readonly instructions?: string
  readonly capabilities?: McpItem
  readonly tools?: readonly McpItem[]
  readonly prompts?: readonly McpItem[]
  readonly resources?: readonly McpItem[]
  readonly resourceTemplates?: readonly McpItem[]
}

/** All servers of the `mcp` section; asked again soon while a session starts. */
export function useMcpTargets(): UseQueryResult<{ readonly targets: readonly McpTarget[] }> {
  return useQuery({
    queryKey: ['mcp-targets'],
    queryFn: ({ signal }) => api<{ readonly targets: readonly McpTarget[] }>('/api/mcp/targets', { signal }),
    refetchInterval: ({ state }) =>
      state.data?.targets.some((target) => target.state === 'pending') ? 3_000 : 30_000,
  })
}

/** One server; undefined does not load. */
export function useMcpTarget(name: string | undefined): UseQueryResult<McpTargetDetails> {
  return useQuery({
    queryKey: ['mcp-target', name],
    queryFn: ({ signal }) => api<McpTargetDetails>(targetPath(name ?? ''), { signal }),
    enabled: name !== undefined,
    refetchInterval: ({ state }) => (state.data?.state === 'pending' ? 3_000 : false),
    staleTime: 30_000,
  })
}

/** Opens a new session at a server. */
export function useRefreshMcpTarget(name: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: () => api<McpTargetDetails>(targetPath(name), { query: { refresh: true } }),
    onSuccess(details) {
      client.setQueryData(['mcp-target', name], details)
      void client.invalidateQueries({ queryKey: ['mcp-targets'] })
    },
  })
}

function targetPath(name: string): string {
  return `/api/mcp/targets/${encodeURIComponent(name)}`
}

/** A client as rules see it. */
export type McpViewer = {
  readonly claims?: unknown
  readonly apiKey?: unknown
  readonly allowedTargets?: readonly string[]
  readonly source?: string
  readonly headers?: unknown
}

export type DecidingRule = {
  /** Place of the rules: `mcpAuthorization`, or with the name of a gateway. */
  readonly rules: string
  readonly index: number
  readonly kind: 'allow' | 'deny' | 'require'
  readonly expression: string
  readonly result?: boolean
  readonly error?: string
  readonly readsArguments?: boolean
}

export type VisibleItem = {
  readonly target: string
  readonly name: string
  readonly exposedName: string
  readonly title?: string
  readonly visible: boolean
  readonly rule?: DecidingRule
  readonly reason?: string
}

export type VisibleLists = {
  readonly targets: readonly McpTarget[]
  readonly hasRules: boolean
  readonly tools: readonly VisibleItem[]
  readonly prompts: readonly VisibleItem[]
  readonly resources: readonly VisibleItem[]
  readonly resourceTemplates: readonly VisibleItem[]
}

/** Lists as a client receives them, with the rule that decides on each item. */
export function useVisible(viewer: McpViewer | undefined): UseQueryResult<VisibleLists> {
  return useQuery({
    queryKey: ['mcp-visible', viewer],
    queryFn: ({ signal }) => api<VisibleLists>('/api/mcp/visible', { method: 'POST', body: viewer, signal }),
    enabled: viewer !== undefined,
    placeholderData: (previous) => previous,
  })
}
