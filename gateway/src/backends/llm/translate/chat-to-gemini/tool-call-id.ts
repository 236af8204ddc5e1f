/**
 * Ids of tool calls with thought signatures. Gemini requires the signature of a call in the next request;
 * clients of all APIs return ids, but not fields that their API lacks. The signature is base64url in the id,
 * whose characters every API accepts.
 */
const separator = '__thought__'

/**
 * Signature for calls of other models, documented for histories without one.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export const skippedSignature = 'skip_thought_signature_validator'

/** Id of a call, with its signature in base64 if it has one. */
export function joinCallId(id: string, signature: string | undefined): string {
  if (signature === undefined || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(signature)) return id
  return id + separator + signature.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** Id and signature of an id. */
export function splitCallId(id: string): { id: string; signature: string | undefined } {
  const start = id.indexOf(separator)
  if (start === -1) return { id, signature: undefined }
  const encoded = id.slice(start + separator.length)
  const plain = encoded.replaceAll('-', '+').replaceAll('_', '/')
  const signature = plain + '='.repeat((4 - (plain.length % 4)) % 4)
  return { id: id.slice(0, start), signature: encoded === '' ? undefined : signature }
}
