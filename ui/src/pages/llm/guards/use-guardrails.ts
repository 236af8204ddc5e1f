import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import type { ConfigRecord } from '../../../api/resources.ts'
import { findRecord } from '../../../save/requests.ts'
import type { Guardrails } from './guard-value.ts'

type Found = { readonly record: ConfigRecord<Guardrails> | undefined }

/** The policy with the guards of all models; without a record if it does not exist. */
export function useGuardrails(): UseQueryResult<Found> {
  return useQuery({
    queryKey: ['record', 'llm.policy', 'guardrails', 'optional'],
    queryFn: async (): Promise<Found> => ({
      record: (await findRecord('llm.policy', 'guardrails')) as ConfigRecord<Guardrails> | undefined,
    }),
  })
}
