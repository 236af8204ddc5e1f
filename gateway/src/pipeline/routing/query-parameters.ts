import { unescape as decode } from 'node:querystring'

/**
 * The parameters of a query (with its question mark) by decoded name; of a repeated one the first value.
 * Escapes that are none stay as they are.
 */
export function parseQuery(query: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  let start = query.startsWith('?') ? 1 : 0
  while (start < query.length) {
    const ampersand = query.indexOf('&', start)
    const end = ampersand < 0 ? query.length : ampersand
    if (end > start) addParameter(parameters, query.slice(start, end))
    start = end + 1
  }
  return parameters
}

function addParameter(parameters: Map<string, string>, pair: string): void {
  const equals = pair.indexOf('=')
  const name = decodePart(equals < 0 ? pair : pair.slice(0, equals))
  if (!parameters.has(name)) parameters.set(name, equals < 0 ? '' : decodePart(pair.slice(equals + 1)))
}

/** `+` is a space, as in forms. */
function decodePart(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  return spaced.includes('%') ? decode(spaced) : spaced
}
