import { useQuery } from '@tanstack/react-query'
import { useEnteredKey } from '../../../api/entered-key.ts'
import { useRecords } from '../../../api/resources.ts'
import { listModels, type Models } from './list-models.ts'

/** Models of a gateway for the entered key. Without a key the gateway is asked only if it may answer. */
export function useModels(
  gateway: string | undefined,
  basePath: string,
): Models | { readonly kind: 'loading' } {
  const [key] = useEnteredKey()
  const policies = useRecords<{ mode?: string }>('llm.policy', { limit: 100 })
  const policy = policies.data?.resources.find(({ name }) => name === 'apiKey')
  const demandsKey = policy !== undefined && (policy.value.mode ?? 'strict') === 'strict'
  const { data, error } = useQuery({
    queryKey: ['playground-models', gateway, basePath, key],
    queryFn: ({ signal }) => listModels(gateway ?? '', basePath, key, signal),
    enabled: gateway !== undefined && (key !== '' || (!policies.isPending && !demandsKey)),
    staleTime: 30_000,
    // The key is a part of the query's name: it must not stay in the cache.
    gcTime: 0,
  })
  if (key === '' && demandsKey) return { kind: 'refused', status: 401, message: 'A virtual key is required.' }
  if (error) return { kind: 'refused', status: 0, message: error.message }
  return data ?? { kind: 'loading' }
}
