import { useState } from 'react'
import { useSearchParams } from 'wouter'
import type { HistoryQuery } from '../../../api/tools/history.ts'

const filters = ['text', 'kind', 'id', 'who', 'from', 'to'] as const
export type HistoryFilter = (typeof filters)[number]

export type HistoryAddress = {
  readonly query: HistoryQuery
  readonly isFiltered: boolean
  set(filter: HistoryFilter, value: string): void
  clear(): void
  /** Opens a change; undefined closes it. */
  open(id: string | undefined): void
  next(cursor: string): void
  readonly previous: (() => void) | undefined
}

/** Filters, page and open change: the query of the address. */
export function useHistoryAddress(): HistoryAddress {
  const [parameters, setParameters] = useSearchParams()
  const [before, setBefore] = useState<readonly (string | undefined)[]>([])
  const read = (name: string) => parameters.get(name) ?? undefined
  const query = Object.fromEntries([...filters, 'cursor'].map((name) => [name, read(name)]))
  const change = (entries: Readonly<Record<string, string | undefined>>) =>
    setParameters((current) => {
      const next = new URLSearchParams(current)
      for (const [name, value] of Object.entries(entries))
        if (value === undefined || value === '') next.delete(name)
        else next.set(name, value)
      return next
    })
  const first = { cursor: undefined }
  return {
    query,
    isFiltered: filters.some((name) => read(name) !== undefined),
    set(filter, value) {
      setBefore([])
      change({ [filter]: value, ...first })
    },
    clear() {
      setBefore([])
      change({ ...Object.fromEntries(filters.map((name) => [name, undefined])), ...first })
    },
    open: (id) => change({ change: id }),
    next(cursor) {
      setBefore([...before, read('cursor')])
      change({ cursor })
    },
    previous:
      read('cursor') === undefined
        ? undefined
        : () => {
            change({ cursor: before.at(-1) })
            setBefore(before.slice(0, -1))
          },
  }
}
