// A `$` that starts a reference, with its name, or any other `$`. As in environment.ts, except that `$$` has
// no meaning here: the text is not escaped yet.
const dollar = /\$(?:\{([^}]+)\}|([\p{Alphabetic}\p{N}_]+))?/gu

/**
 * Escapes a value for the configuration file: each `$` in a text becomes `$$`, except in references to the
 * allowed variables. Keys are never expanded and stay unchanged.
 */
export function escapeReferences(value: unknown, allowedEnv: ReadonlySet<string>): unknown {
  if (typeof value === 'string') return escapeText(value, allowedEnv)
  if (Array.isArray(value)) return value.map((item) => escapeReferences(item, allowedEnv))
  if (typeof value !== 'object' || value === null) return value
  // Object.fromEntries defines `__proto__` as a key, for the schema to refuse.
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, escapeReferences(item, allowedEnv)]),
  )
}

function escapeText(text: string, allowedEnv: ReadonlySet<string>): string {
  if (!text.includes('$')) return text
  return text.replace(dollar, (found: string, braced?: string, bare?: string) => {
    const name = nameOf(braced ?? bare ?? '')
    return name !== '' && allowedEnv.has(name) ? found : found.replaceAll('$', '$$$$')
  })
}

function nameOf(inner: string): string {
  const at = inner.indexOf(':-')
  return at === -1 ? inner : inner.slice(0, at)
}
