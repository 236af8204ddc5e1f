import { hash } from 'node:crypto'
import type { CelProgram } from '../../cel/cel.ts'
import { isCredentialName } from '../../lib/http-token.ts'

/**
 * Parts of the request in expressions that are or contain credentials. `key` alone is no credential there:
 * names of headers are checked in addition.
 */
const credentialParts =
  /auth|cookie|api[-_]?key|token|secret|passw|credential|session|\bquery\b|pathAndQuery|\buri\b/i

/** The text of `jwt.rawToken` and `apiKey.key`. */
const unredacted = /\bunredacted\b/

/** References to the request with their members, up to the next operator. */
const requestReferences = /\brequest\b[^,;()&|+?:=!<>]*/g

/** Names of headers in such a reference: `headers["x-key"]`, `headers.cookie`. */
const headerReferences = /(?<=\b(?:connectH|h)eaders\b.*?)[\w-]+/g

/** Headers of the CONNECT request that a connection is within. */
const connectHeaders = /\bconnectHeaders\b[^,;()&|+?:=!<>]*/g

/**
 * Whether values of an expression may be credentials of clients, which the ledger must not contain.
 * `sensitive` lists further names of headers, in lower case.
 */
export function mayBeCredential(
  { roots, source }: Pick<CelProgram, 'roots' | 'source'>,
  sensitive: ReadonlySet<string> = noNames,
): boolean {
  if (unredacted.test(source)) return true
  const references = [
    ...(roots.has('request') ? (source.match(requestReferences) ?? []) : []),
    ...(roots.has('source') ? (source.match(connectHeaders) ?? []) : []),
  ]
  return references.some(
    (reference) =>
      credentialParts.test(reference) ||
      reference
        .match(headerReferences)
        ?.some((name) => isCredentialName(name) || sensitive.has(name.toLowerCase())) === true,
  )
}

const noNames: ReadonlySet<string> = new Set()

/** A text in place of a value that must not be stored: equal for equal values. */
export function hashedValue(text: string): string {
  return `sha256:${hash('sha256', Buffer.from(text, 'utf16le'), 'hex')}`
}
