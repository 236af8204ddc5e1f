/** Text in place of a credential. */
const shown = '[hidden]'

/**
 * Replaces a credential in an error that is relayed or logged: some servers quote the rejected one. Texts of
 * JSON and of URLs contain it with escapes.
 */
export function hideCredential(bytes: Uint8Array, credential: string | undefined): Buffer {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (credential === undefined || credential === '') return buffer
  const forms = new Set([
    credential,
    JSON.stringify(credential).slice(1, -1),
    credential.replaceAll('/', '\\/'),
    encodeURIComponent(credential),
  ])
  const found = [...forms].filter((form) => buffer.includes(form))
  if (found.length === 0) return buffer
  return Buffer.from(found.reduce((text, form) => text.replaceAll(form, shown), buffer.toString()))
}
