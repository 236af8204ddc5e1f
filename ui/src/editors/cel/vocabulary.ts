import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from '../../api/client.ts'

/** A variable of expressions, or a member of one. */
export type CelVariable = {
  readonly name: string
  readonly doc: string
  readonly members?: readonly CelVariable[]
  /** Members depend on the data, such as claims. */
  readonly open?: boolean
}

export type CelScope = {
  readonly name: string
  readonly doc: string
  readonly variables: readonly CelVariable[]
}

export type CelVocabulary = {
  readonly scopes: readonly CelScope[]
  readonly functions: readonly { readonly name: string; readonly forms: readonly string[] }[]
}

/** Result of a check. `offset` counts characters from the start of the expression. */
export type CelCheck =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly message: string
      readonly offset?: number
      readonly line?: number
      readonly column?: number
    }

/** Variables by scope, and functions. */
export function useCelVocabulary(): UseQueryResult<CelVocabulary> {
  return useQuery({
    queryKey: ['cel-variables'],
    queryFn: ({ signal }) => api<CelVocabulary>('/api/cel/variables', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/** Checks an expression without evaluating it. */
export function checkCel(
  expression: string,
  place: { readonly roots?: readonly string[] | undefined; readonly scope?: string | undefined },
  signal?: AbortSignal,
): Promise<CelCheck> {
  return api<CelCheck>('/api/cel/check', { method: 'POST', body: { expression, ...place }, signal })
}
