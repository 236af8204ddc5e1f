import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

const knownFields = ['model', 'input', 'dimensions', 'encoding_format', 'user']

/**
 * The texts of a request for embeddings; `own` are further fields of the service. Token ids have no meaning
 * for models of other vendors.
 */
export function textsOf(body: JsonObject, own: readonly string[], refusals: Refusals): string[] {
  refusals.addUnknown(body, new Set([...knownFields, ...own]), '')
  const { input } = body
  const texts: readonly JsonValue[] = Array.isArray(input) ? input : [input ?? '']
  if (texts.length === 0 || !texts.every((text) => typeof text === 'string' && text !== ''))
    refusals.add('input', 'must be a text or a list of texts that are not empty')
  return texts.map(String)
}

/** Settings that the response depends on: clients may request vectors as base64. */
export function formatOf({ encoding_format: format }: JsonObject, refusals: Refusals): JsonObject {
  if (!isAbsent(format) && format !== 'float' && format !== 'base64')
    refusals.add('encoding_format', 'must be float or base64')
  return { encoding_format: format === 'base64' ? 'base64' : 'float' }
}
