import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { parseNestedObject } from '../exact-json.ts'

/**
 * A `thoughtSignature` with the thinking of another API. Clients return signatures with the calls that follow
 * them, and the messages API requires its thinking together with the results of calls.
 */
export function toSignature(details: readonly JsonObject[]): string | undefined {
  return details.length === 0 ? undefined : Buffer.from(JSON.stringify({ details })).toString('base64')
}

/** The thinking in a signature in base64 or base64url; empty for those of Google. */
export function fromSignature(signature: string): JsonObject[] {
  // The text of an object begins with a brace and a quote, which are these characters in base64.
  if (!signature.startsWith('eyJ')) return []
  const { details } = parseNestedObject(Buffer.from(signature, 'base64').toString()) ?? {}
  return Array.isArray(details) ? details.filter(isJsonObject) : []
}
