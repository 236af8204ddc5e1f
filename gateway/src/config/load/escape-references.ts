// A `$` that starts a reference, with the name of it, or any other `$`. As in environment.ts, except that `$$` means nothing
// here yet: it is text from outside.
const dollar = /\$(?:\{([^}]+)\}|([\p{Alphabetic}\p{N}_]+))?/gu

/**
 * The value as it has to stand in the configuration file to say the same after references are expanded: each `$` of each text
 * becomes `$$`. References to the allowed variables stay references. Keys are never expanded, so they stay as they are.
 */
export function escapeReferences(value: unknown, allowedEnv: ReadonlySet<string>): unknown {
  if (typeof value === 'string') return escapeText(value, allowedEnv)
  if (Array.isArray(value)) return value.map((item) => escapeReferences(item, allowedEnv))
  if (typeof value !== 'object' || value === null) return value
  // Defined entry by entry: `__proto__` stays a key, for the schema to refuse.
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
