import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from './client.ts'

/** Place of a record: a line of the configuration file, the database, or an object of a cluster. */
export type RecordOrigin =
  | { readonly kind: 'file'; readonly line?: number }
  | { readonly kind: 'database' }
  | { readonly kind: 'object'; readonly object: string }

/** A config resource with its envelope. Secrets of the value are masked as `***`. */
export type ConfigRecord<Value = Readonly<Record<string, unknown>>> = {
  readonly kind: string
  readonly id: string
  /** Name of a policy; other records have it in their value. */
  readonly name?: string
  readonly value: Value
  readonly revision?: number | string
  readonly createdAt?: string
  readonly updatedAt?: string
  readonly shadowed?: boolean
  /** Generated virtual key: in the reply to its creation alone. */
  readonly key?: string
  readonly origin?: RecordOrigin
}

export type RecordPage<Value = Readonly<Record<string, unknown>>> = {
  readonly resources: readonly ConfigRecord<Value>[]
  readonly total?: number
  readonly nextCursor?: string
}

/** Selection of a list. `sort` is a field path; a leading `-` is descending. */
export type RecordQuery = {
  readonly search?: string | undefined
  readonly sort?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  /** Further filters: `name`, `metadata.<field>`. */
  readonly [filter: `metadata.${string}`]: string | undefined
}

export function recordsPath(kind: string, id?: string): string {
  const path = `/api/config/resources/${encodeURIComponent(kind)}`
  return id === undefined ? path : `${path}/${encodeURIComponent(id)}`
}

/** One page of the records of a kind, those of the file included. */
export function useRecords<Value = Readonly<Record<string, unknown>>>(
  kind: string,
  query: RecordQuery = {},
): UseQueryResult<RecordPage<Value>> {
  const parameters = { limit: 50, sort: 'name', ...query }
  return useQuery({
    queryKey: ['records', kind, parameters],
    queryFn: ({ signal }) => api<RecordPage<Value>>(recordsPath(kind), { query: parameters, signal }),
    placeholderData: keepPreviousData,
  })
}

/** One record, by its id or name. `id` undefined does not load. */
export function useRecord<Value = Readonly<Record<string, unknown>>>(
  kind: string,
  id: string | undefined,
): UseQueryResult<ConfigRecord<Value>> {
  return useQuery({
    queryKey: ['record', kind, id],
    queryFn: ({ signal }) => fetchRecord<Value>(kind, id ?? '', signal),
    enabled: id !== undefined,
  })
}

export function fetchRecord<Value = Readonly<Record<string, unknown>>>(
  kind: string,
  id: string,
  signal?: AbortSignal,
): Promise<ConfigRecord<Value>> {
  return api<ConfigRecord<Value>>(recordsPath(kind, id), { signal })
}

/** JSON Schema of one record of a kind; of one policy with `name`; of all policies of the kind without. */
export function useKindSchema(kind: string, name?: string, enabled = true): UseQueryResult<object> {
  return useQuery({
    queryKey: ['kind-schema', kind, name],
    queryFn: ({ signal }) =>
      api<object>(`/api/config/schema/${encodeURIComponent(kind)}`, { query: { name }, signal }),
    // A schema changes with the version of the gateway only.
    staleTime: Number.POSITIVE_INFINITY,
    enabled,
  })
}
