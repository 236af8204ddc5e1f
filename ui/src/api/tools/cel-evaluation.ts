import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from '../client.ts'

/** Facts of a scope: samples, or those of a recorded request. */
export type CelFacts = {
  readonly facts: Readonly<Record<string, unknown>>
  /** Variables that the ledger does not record. */
  readonly missing: readonly string[]
}

export type CelMistake = {
  readonly message: string
  readonly line?: number
  readonly column?: number
}

export type CelEvaluation =
  | { readonly value: unknown; readonly type: string; readonly error?: undefined }
  | { readonly error: CelMistake }

export function useCelFacts(scope: string, requestId: string | undefined): UseQueryResult<CelFacts> {
  return useQuery({
    queryKey: ['cel-facts', scope, requestId],
    queryFn: ({ signal }) => api<CelFacts>('/api/cel/facts', { query: { scope, requestId }, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/** Value of an expression over facts. `facts` undefined does not evaluate. */
export function useCelEvaluation(
  expression: string,
  scope: string,
  facts: unknown,
): UseQueryResult<CelEvaluation> {
  return useQuery({
    queryKey: ['cel-evaluation', expression, scope, facts],
    queryFn: ({ signal }) =>
      api<CelEvaluation>('/api/cel/evaluate', { method: 'POST', body: { expression, scope, facts }, signal }),
    enabled: expression.trim() !== '' && facts !== undefined,
    // `now` is another one each time; the value is that of the last change.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 10_000,
    placeholderData: (previous) => previous,
  })
}
