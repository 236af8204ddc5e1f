import { type Refusal, refusal } from './change.ts'

const form = /^(?:\*|(?:W\/)?"[^"]*"(?:\s*,\s*(?:W\/)?"[^"]*")*)$/

/**
 * Refuses a change if `if-match` (RFC 9110 section 13.1.1) does not match the revision of the record.
 * `revision` is undefined for records that do not exist or have no revision. Comparison is strong: weak tags
 * match none.
 */
export function preconditionFails(
  ifMatch: string | undefined,
  revision: number | string | undefined,
): Refusal | undefined {
  if (ifMatch === undefined) return undefined
  const text = ifMatch.trim()
  if (!form.test(text)) return refusal(400, 'if-match must be * or a revision in quotes, such as "3"')
  if (revision === undefined) return refusal(412, 'if-match: there is no such revision')
  if (text === '*') return undefined
  const tags: readonly string[] = text.match(/(?:W\/)?"[^"]*"/g) ?? []
  if (tags.includes(`"${revision}"`)) return undefined
  return refusal(412, `if-match: the record is at revision ${revision} now`)
}
