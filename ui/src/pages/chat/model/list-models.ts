import { forward } from '../../../api/forward.ts'
import { errorOf } from './completion.ts'
import { credential } from './send.ts'

/** Model names that a key may use; patterns are listed as they are. */
export type Models =
  | { readonly kind: 'listed'; readonly names: readonly string[] }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }

/** Lists the models of a gateway with the key of a client. */
export async function listModels(
  gateway: string,
  basePath: string,
  key: string,
  signal: AbortSignal,
): Promise<Models> {
  const response = await forward(gateway, `${basePath}/models`, { headers: credential(key), signal })
  const body: unknown = await response.json().catch(() => 'The response is not JSON.')
  if (!response.ok) return { kind: 'refused', status: response.status, message: errorOf(body).message }
  const { data } = body as { data?: readonly { id?: unknown }[] }
  return { kind: 'listed', names: (data ?? []).flatMap(({ id }) => (typeof id === 'string' ? id : [])) }
}
