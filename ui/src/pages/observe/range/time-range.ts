const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

export type Preset = { readonly id: string; readonly label: string; readonly lengthMs: number }

export const presets: readonly Preset[] = [
  { id: '15m', label: 'Last 15 minutes', lengthMs: 15 * minuteMs },
  { id: '1h', label: 'Last hour', lengthMs: hourMs },
  { id: '6h', label: 'Last 6 hours', lengthMs: 6 * hourMs },
  { id: '24h', label: 'Last 24 hours', lengthMs: dayMs },
  { id: '7d', label: 'Last 7 days', lengthMs: 7 * dayMs },
  { id: '30d', label: 'Last 30 days', lengthMs: 30 * dayMs },
  { id: '90d', label: 'Last 90 days', lengthMs: 90 * dayMs },
  { id: '1y', label: 'Last 12 months', lengthMs: 365 * dayMs },
]

/** A range of the address: a preset that ends now, or two times. */
export type RangeChoice =
  | { readonly kind: 'preset'; readonly preset: Preset }
  | { readonly kind: 'custom'; readonly from: number; readonly to: number }

/** Milliseconds since the epoch. */
export type Range = { readonly from: number; readonly to: number }

/** Reads `range`, or `from` and `to`, of an address. Anything else is the default. */
export function readRange(parameters: URLSearchParams, defaultId: string): RangeChoice {
  const [from, to] = ['from', 'to'].map((name) => Date.parse(parameters.get(name) ?? ''))
  if (from !== undefined && to !== undefined && from < to) return { kind: 'custom', from, to }
  const id = parameters.get('range')
  const preset = presets.find((one) => one.id === id) ?? presets.find((one) => one.id === defaultId)
  return { kind: 'preset', preset: preset ?? { id: '24h', label: 'Last 24 hours', lengthMs: dayMs } }
}

/** Writes a range into an address. */
export function writeRange(parameters: URLSearchParams, choice: RangeChoice): URLSearchParams {
  const next = new URLSearchParams(parameters)
  for (const name of ['range', 'from', 'to']) next.delete(name)
  if (choice.kind === 'preset') next.set('range', choice.preset.id)
  else {
    next.set('from', new Date(choice.from).toISOString())
    next.set('to', new Date(choice.to).toISOString())
  }
  return next
}

/** The times of a choice. The end of a preset is the next whole minute, so that a reply can be reused. */
export function resolveRange(choice: RangeChoice, now: number): Range {
  if (choice.kind === 'custom') return { from: choice.from, to: choice.to }
  const to = Math.ceil(now / minuteMs) * minuteMs
  return { from: to - choice.preset.lengthMs, to }
}

/** The range of the same length before a range. */
export function previousRange({ from, to }: Range): Range {
  return { from: from - (to - from), to: from }
}

export function toTimeRange({ from, to }: Range): { from: string; to: string } {
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
}

/** Times of all buckets of a range; the server omits those without requests. */
export function bucketTimes({ from, to }: Range, bucketMs: number): readonly number[] {
  const weekMs = 7 * dayMs
  // Weeks of the server start on Monday; the epoch was a Thursday.
  const offset = bucketMs % weekMs === 0 ? 4 * dayMs : 0
  const first = Math.floor((from - offset) / bucketMs) * bucketMs + offset
  const count = Math.min(2_001, Math.max(1, Math.ceil((to - first) / bucketMs)))
  return Array.from({ length: count }, (_, index) => first + index * bucketMs)
}

/** Value of an `<input type="datetime-local">` in the time zone of the browser. */
export function toLocalInput(time: number): string {
  const date = new Date(time)
  return new Date(time - date.getTimezoneOffset() * minuteMs).toISOString().slice(0, 16)
}
