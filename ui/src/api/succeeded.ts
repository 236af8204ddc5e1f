import { useQuery } from '@tanstack/react-query'
import { api } from './client.ts'
import { useWhoami } from './whoami.ts'

/**
 * Whether the ledger has a successful request of a kind. `unknown` without a ledger, undefined while loading. It is read
 * again while there is none.
 */
export function useSucceeded(kind: 'llm' | 'mcp'): 'yes' | 'no' | 'unknown' | undefined {
  const { data: whoami } = useWhoami()
  const { data } = useQuery({
    queryKey: ['succeeded', kind],
    queryFn: ({ signal }) => search(kind, signal),
    enabled: whoami?.ledger === true,
    refetchInterval: ({ state }) => (state.data === 'no' ? 2_000 : false),
  })
  return whoami?.ledger === false ? 'unknown' : data
}

async function search(kind: 'llm' | 'mcp', signal: AbortSignal): Promise<'yes' | 'no'> {
  const filters = {
    kind: [kind],
    status: { min: 200, max: 299 },
    ...(kind === 'mcp' ? { mcpMethod: ['tools/call'] } : {}),
  }
  const { logs } = await api<{ logs: readonly unknown[] }>('/api/logs/search', {
    method: 'POST',
    body: { filters, limit: 1 },
    signal,
  })
  return logs.length > 0 ? 'yes' : 'no'
}
