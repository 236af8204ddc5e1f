/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

export type Expansion = {
  text: string
  /** Unset variables without a default, each once, with the text of the first reference. */
  missing: { name: string; reference: string }[]
  /** Whether the text consists of one reference. */
  whole: boolean
  /** Whether a reference was replaced by the value of a variable or a default. */
  replaced: boolean
}

// `$$`, `${…}` or `$NAME`. Any other `$`, and an unclosed `${`, are literal.
const reference = /\$(?:\$|\{([^}]+)\}|([\p{Alphabetic}\p{N}_]+))/gu

/**
 * Replaces the references of a scalar: `${NAME}`, `$NAME`, `${NAME:-default}` (if unset; a variable set to
 * the empty text is set), and `$$` for a dollar sign. Values are not expanded again.
 */
export function expandReferences(text: string, environment: Environment): Expansion {
  if (!text.includes('$')) return { text, missing: [], whole: false, replaced: false }
  const missing = new Map<string, string>()
  const expansion: Expansion = { text: '', missing: [], whole: false, replaced: false }
  expansion.text = text.replace(reference, (found: string, braced?: string, bare?: string) => {
    if (found === '$$') return '$'
    expansion.replaced = true
    expansion.whole = found.length === text.length
    const [name, fallback] = splitDefault(braced ?? bare ?? '')
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined
    if (value !== undefined) return value
    if (fallback !== undefined) return fallback
    if (!missing.has(name)) missing.set(name, found)
    return ''
  })
  expansion.missing = [...missing].map(([name, reference]) => ({ name, reference }))
  return expansion
}

function splitDefault(inner: string): [name: string, fallback: string | undefined] {
  const at = inner.indexOf(':-')
  return at === -1 ? [inner, undefined] : [inner.slice(0, at), inner.slice(at + 2)]
}
