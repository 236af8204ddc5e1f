import { useMemo } from 'react'
import { type Summary, useSummary } from '../../../api/ledger/summary.ts'
import type { VirtualKey } from '../../../api/llm/keys.ts'
import { useWhoami } from '../../../api/whoami.ts'

const dayMs = 86_400_000
const days = 30

type Spend = { readonly cost: number; readonly requestsByDay: readonly number[] }

/** Use of the listed keys in the last 30 days. `absent` without a ledger. */
export type KeySpend =
  | { readonly kind: 'absent' }
  | { readonly kind: 'loading' }
  | { readonly kind: 'loaded'; of(id: string): Spend }

const none: Spend = { cost: 0, requestsByDay: [] }

/** Reads the use of all keys of a page in one query. */
export function useKeySpend(keys: readonly VirtualKey[]): KeySpend {
  const { data: whoami } = useWhoami()
  const ids = keys.map(({ id }) => id)
  const from = startOfToday() - (days - 1) * dayMs
  const summary = useSummary(
    {
      timeRange: { from: new Date(from).toISOString() },
      filters: { keyId: ids },
      groupBy: ['keyId'],
      bucketSeconds: dayMs / 1_000,
    },
    { enabled: whoami?.ledger === true && ids.length > 0 },
  )
  const { data, isError } = summary
  return useMemo((): KeySpend => {
    if (whoami?.ledger !== true || isError) return { kind: 'absent' }
    if (data === undefined) return { kind: 'loading' }
    const spends = spendsOf(data, from)
    return { kind: 'loaded', of: (id) => spends.get(id) ?? none }
  }, [whoami, data, isError, from])
}

function spendsOf({ groups, buckets }: Summary, from: number): ReadonlyMap<string, Spend> {
  const byDay = new Map<string, number[]>()
  for (const { group, start, requests } of buckets) {
    const id = String(group['keyId'])
    const counts = byDay.get(id) ?? Array.from({ length: days }, () => 0)
    byDay.set(id, counts)
    const day = Math.floor((Date.parse(start) - from) / dayMs)
    if (day >= 0 && day < days) counts[day] = (counts[day] ?? 0) + requests
  }
  return new Map(
    groups.map(({ group, cost }) => {
      const id = String(group['keyId'])
      return [id, { cost, requestsByDay: byDay.get(id) ?? [] }]
    }),
  )
}

/** Start of the day in UTC, in milliseconds since the epoch: days of the ledger are those of UTC. */
function startOfToday(): number {
  return Math.floor(Date.now() / dayMs) * dayMs
}
