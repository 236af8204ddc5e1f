/** Text in place of a credential. */
const shown = '[hidden]'

/**
 * Replaces credentials in an error that is relayed or logged: some servers quote the rejected one. Texts of
 * JSON and of URLs contain them with escapes.
 */
export function hideCredentials(bytes: Uint8Array, credentials: readonly string[] = []): Buffer {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const forms = new Set(credentials.flatMap(formsOf))
  const found = [...forms].filter((form) => form !== '' && buffer.includes(form))
  if (found.length === 0) return buffer
  return Buffer.from(found.reduce((text, form) => text.replaceAll(form, shown), buffer.toString()))
}

function formsOf(credential: string): string[] {
  return [
    credential,
    JSON.stringify(credential).slice(1, -1),
    credential.replaceAll('/', '\\/'),
    encodeURIComponent(credential),
  ]
}
