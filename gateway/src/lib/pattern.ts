import { RE2JS } from 're2js'

/**
 * A regular expression that runs in time linear to the text, whatever the pattern: safe for patterns and texts that
 * nobody reviewed.
 */
export type Pattern = {
  /** Whether any part of the text matches. */
  test(text: string): boolean
  /** The text with every match replaced by `replacement`, taken literally; nothing is put where a match has no characters. */
  replaceAll(text: string, replacement: string): string
}

export type CompiledPattern = ({ ok: true } & Pattern) | { ok: false; message: string }

const maxSourceLength = 4096

/** Compiles a pattern in RE2 syntax (https://github.com/google/re2/wiki/Syntax): no look-around, no back references. */
export function compilePattern(source: string): CompiledPattern {
  if (source.length > maxSourceLength) {
    return { ok: false, message: `regular expression is longer than ${maxSourceLength} characters` }
  }
  try {
    const compiled = RE2JS.compile(source)
    return {
      ok: true,
      test: (text) => compiled.test(text),
      replaceAll: (text, replacement) =>
        compiled.matcher(text).replaceAll((match: string) => (match === '' ? '' : replacement)),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { ok: false, message: `invalid regular expression "${source}": ${reason}` }
  }
}

/**
 * Compiles patterns that are known only while requests are served, keeping the latest `limit` of them.
 * Returns undefined for an invalid pattern.
 */
export function createPatternCache(limit: number): (source: string) => Pattern | undefined {
  const patterns = new Map<string, Pattern | undefined>()
  return (source) => {
    const known = patterns.get(source)
    if (known !== undefined || patterns.has(source)) return known
    const compiled = compilePattern(source)
    const pattern = compiled.ok ? compiled : undefined
    if (patterns.size >= limit) forgetOldest(patterns)
    patterns.set(source, pattern)
    return pattern
  }
}

function forgetOldest(patterns: Map<string, unknown>) {
  for (const source of patterns.keys()) {
    patterns.delete(source)
    return
  }
}
