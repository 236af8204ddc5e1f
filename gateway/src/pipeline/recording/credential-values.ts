import { hash } from 'node:crypto'
import type { CelProgram } from '../../cel/cel.ts'

/** Names of headers and parameters with credentials, and parts of the request that contain the query. */
const credentialNames =
  /auth|cookie|api[-_]?key|token|secret|passw|credential|session|\bquery\b|pathAndQuery|\buri\b/i

/** References to the request with their members, up to the next operator. */
const requestReferences = /\brequest\b[^,;()&|+?:=!<>]*/g

/** Whether values of an expression may be credentials of requests, which the ledger must not contain. */
export function mayBeCredential({ roots, source }: Pick<CelProgram, 'roots' | 'source'>): boolean {
  if (!roots.has('request')) return false
  return source.match(requestReferences)?.some((reference) => credentialNames.test(reference)) === true
}

/** A text in place of a value that must not be stored: equal for equal values. */
export function hashedValue(text: string): string {
  return `sha256:${hash('sha256', Buffer.from(text, 'utf16le'), 'hex')}`
}
