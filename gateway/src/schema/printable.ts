const maxLength = 400
/** Text beyond this length is ignored. */
const maxRead = 2_000

/**
 * Formats a message as one line of at most 400 characters. Keys, names and values in it are untrusted: line
 * breaks become spaces, control characters a replacement character, PEM text (possibly a private key) is
 * truncated after its first word, and credentials in URLs are masked.
 */
export function printable(text: string): string {
  const line = withoutCredentials(text)
    .replace(/-----BEGIN .*/s, '-----BEGIN…')
    .replace(/\s+/g, ' ')
    .replace(/\p{C}/gu, '\uFFFD')
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
}

/** Masks user information and queries of URLs in a text. `ada:pw@host` counts as a URL only in quotes. */
export function withoutCredentials(text: string): string {
  return text
    .slice(0, maxRead)
    .replace(/:\/\/[^\s"]*@/g, '://***@')
    .replace(/"[^\s"]*:[^\s"]*@/g, (quoted) => (quoted.includes('://') ? quoted : '"***@'))
    .replace(/(:\/\/[^\s"?]*)\?[^\s"]+/g, '$1?***')
}
