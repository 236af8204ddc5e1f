const maxLength = 400
/** Text beyond is not looked at. */
const maxRead = 2_000

/**
 * A message about a configuration as one line of at most 400 characters. Keys, names and values in it come from outside:
 * line breaks become spaces, control characters a replacement character, PEM text, which may be a private key, is cut
 * off after its first word, and addresses lose their credentials.
 */
export function printable(text: string): string {
  const line = withoutCredentials(text)
    .replace(/-----BEGIN .*/s, '-----BEGIN…')
    .replace(/\s+/g, ' ')
    .replace(/\p{C}/gu, '\uFFFD')
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
}

/** A text with user information and queries of addresses in it masked; `ada:pw@host` counts as an address in quotes only. */
export function withoutCredentials(text: string): string {
  return text
    .slice(0, maxRead)
    .replace(/:\/\/[^\s"]*@/g, '://***@')
    .replace(/"[^\s"]*:[^\s"]*@/g, (quoted) => (quoted.includes('://') ? quoted : '"***@'))
    .replace(/(:\/\/[^\s"?]*)\?[^\s"]+/g, '$1?***')
}
