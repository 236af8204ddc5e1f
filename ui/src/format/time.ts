const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const time = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })

type Moment = string | number | Date

/** Date and time in the time zone of the browser. */
export function formatDateTime(moment: Moment): string {
  return dateTime.format(new Date(moment))
}

export function formatDate(moment: Moment): string {
  return date.format(new Date(moment))
}

export function formatTime(moment: Moment): string {
  return time.format(new Date(moment))
}

const steps: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]

/** Distance from `now`: `3 min. ago`, `in 2 days`. */
export function formatAgo(moment: Moment, now: number = Date.now()): string {
  const distance = new Date(moment).getTime() - now
  for (const [unit, size] of steps)
    if (Math.abs(distance) >= size) return relative.format(Math.round(distance / size), unit)
  return 'just now'
}

/** Milliseconds as `840 ms`, `1.24 s`, `3 min 20 s`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 10) return `${Number(milliseconds.toPrecision(2))} ms`
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`
  if (milliseconds < 60_000) return `${Number((milliseconds / 1_000).toPrecision(3))} s`
  const seconds = Math.round(milliseconds / 1_000)
  return seconds < 3_600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}
