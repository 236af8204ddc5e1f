import { unescape as decode } from 'node:querystring'

/**
 * Parses a query (with its question mark) to parameters by decoded name; the first value of a repeated one.
 * Invalid escapes are retained.
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
