/** A longer timer would fire immediately. */
export const longestTimerMs = 2 ** 31 - 1

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: hourMs, d: dayMs } as const
type Unit = keyof typeof unitMs
const part = /(\d+(?:\.\d+)?)(ms|[smhd])/y

/**
 * Milliseconds of `500ms`, `10s`, `1.5s` or `1h30m`; undefined for anything else, including a bare or
 * negative number. Units must descend without repetition, so that a typo such as `10m5m` is not read as
 * fifteen minutes.
 */
export function parseDuration(text: string): number | undefined {
  if (text.length > 64) return undefined
  part.lastIndex = 0
  let total = 0
  let smallest: number = Number.POSITIVE_INFINITY
  while (part.lastIndex < text.length) {
    const match = part.exec(text)
    if (match === null) return undefined
    const factor = unitMs[match[2] as Unit]
    if (factor >= smallest) return undefined
    smallest = factor
    total += Number(match[1]) * factor
  }
  if (smallest === Number.POSITIVE_INFINITY || !Number.isSafeInteger(Math.round(total))) return undefined
  return Math.round(total)
}

/** Milliseconds of an optional duration; undefined if absent or invalid. */
export function milliseconds(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDuration(text)
}
