const minuteMs = 60_000
const dayMs = 86_400_000

const seconds = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const minutes = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const days = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })
const months = new Intl.DateTimeFormat(undefined, { month: 'short', year: 'numeric' })
const exact = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})
const dayHour = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
})
const wholeDay = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  month: 'short',
  day: 'numeric',
  year: 'numeric',
})

/** Label of an axis at a time, for ticks with a distance of `stepMs`. Midnight is the date. */
export function tickLabel(time: number, stepMs: number): string {
  const date = new Date(time)
  if (stepMs >= 28 * dayMs) return months.format(date)
  if (stepMs >= dayMs) return days.format(date)
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0
  if (isMidnight) return days.format(date)
  return stepMs < minuteMs ? seconds.format(date) : minutes.format(date)
}

/** Label of the bucket at a time. */
export function bucketLabel(time: number, bucketMs: number): string {
  if (bucketMs >= dayMs) return wholeDay.format(time)
  return bucketMs < minuteMs ? exact.format(time) : dayHour.format(time)
}
