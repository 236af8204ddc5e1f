const form =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/

/**
 * Milliseconds since the Unix epoch of an RFC 3339 time, such as `2027-01-31T00:00:00Z`; undefined for
 * anything else, including a time without offset and days that a month does not have. A leap second counts as
 * the second after it.
 */
export function parseTimestamp(text: string): number | undefined {
  const match = text.length > 40 ? null : form.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number)
  const [offsetHours, offsetMinutes] = [Number(match[9] ?? 0), Number(match[10] ?? 0)]
  if (hour > 23 || minute > 59 || second > 60 || offsetHours > 23 || offsetMinutes > 59) return undefined
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  const milliseconds = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3))
  const offset = (match[8] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes)
  return date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1_000 + milliseconds
}
