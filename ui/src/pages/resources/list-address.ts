import { useCallback, useMemo, useState } from 'react'
import { useSearchParams } from 'wouter'

/** Search, order and page of a list: the query of the address. */
export type ListAddress = {
  readonly search: string
  readonly sort: string
  readonly cursor: string | undefined
  setSearch(search: string): void
  setSort(sort: string): void
  /** Opens the page of a cursor of the server. */
  next(cursor: string): void
  /** Opens the page before; undefined on the first. */
  readonly previous: (() => void) | undefined
}

export function useListAddress(defaultSort = 'name'): ListAddress {
  const [parameters, setParameters] = useSearchParams()
  const [before, setBefore] = useState<readonly (string | undefined)[]>([])
  const search = parameters.get('search') ?? ''
  const sort = parameters.get('sort') ?? defaultSort
  const cursor = parameters.get('cursor') ?? undefined
  const change = useCallback(
    (entries: Readonly<Record<string, string | undefined>>) =>
      setParameters(
        (current) => {
          const next = new URLSearchParams(current)
          for (const [name, value] of Object.entries(entries))
            if (value === undefined || value === '') next.delete(name)
            else next.set(name, value)
          return next
        },
        { replace: true },
      ),
    [setParameters],
  )
  return useMemo(
    () => ({
      search,
      sort,
      cursor,
      setSearch: (text) => {
        setBefore([])
        change({ search: text, cursor: undefined })
      },
      setSort: (next) => {
        setBefore([])
        change({ sort: next === defaultSort ? undefined : next, cursor: undefined })
      },
      next: (to) => {
        setBefore([...before, cursor])
        change({ cursor: to })
      },
      // A link to a later page has no pages before it in memory: the first one is next.
      previous:
        cursor === undefined
          ? undefined
          : () => {
              change({ cursor: before.at(-1) })
              setBefore(before.slice(0, -1))
            },
    }),
    [search, sort, cursor, before, change, defaultSort],
  )
}
