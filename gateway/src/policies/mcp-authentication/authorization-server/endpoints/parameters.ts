import { readAll } from '../../../../net/http/body.ts'
import { firstHeader } from '../../../../net/http/headers.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'

/** Parameters of a query or a form. */
export type Parameters = {
  /** Value of a parameter; undefined if absent or empty (RFC 6749 section 3.1). */
  get(name: string): string | undefined
  /** Names of repeated parameters, which RFC 6749 section 3.1 forbids. */
  readonly repeated: ReadonlySet<string>
}

const maxFormBytes = 64 * 1024

/** Parses a query, with or without its question mark, or a form. */
export function readParameters(text: string): Parameters {
  const values = new Map<string, string>()
  const repeated = new Set<string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (values.has(name)) repeated.add(name)
    else values.set(name, value)
  }
  return { get: (name) => values.get(name) || undefined, repeated }
}

/**
 * Parses the form in the body; undefined for other content types. Rejects with `request_too_large` over 64
 * KiB.
 */
export async function readForm({ facts, body }: Exchange): Promise<Parameters | undefined> {
  const type = firstHeader(facts.request.headers, 'content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) return undefined
  return readParameters((await readAll(body, maxFormBytes, 'request_too_large')).toString('utf8'))
}
