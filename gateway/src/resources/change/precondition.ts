import { type Refusal, refusal } from './change.ts'

const form = /^(?:\*|(?:W\/)?"[^"]*"(?:\s*,\s*(?:W\/)?"[^"]*")*)$/

/**
 * Why `if-match` (RFC 9110 section 13.1.1) forbids a change of a record of this revision; undefined is a record that is not
 * there, or that has no revisions. Revisions are compared strongly, so weak ones match none.
 */
export function preconditionFails(
  ifMatch: string | undefined,
  revision: number | undefined,
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
