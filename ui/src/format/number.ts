const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 3 })
const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumSignificantDigits: 2 })

/** `12345` as `12,345`, in the language of the browser. */
export function formatNumber(value: number): string {
  return Number.isInteger(value) ? whole.format(value) : String(Number(value.toPrecision(4)))
}

/** `1234567` as `1.23M`. */
export function formatCompact(value: number): string {
  return Math.abs(value) < 1_000 ? formatNumber(value) : compact.format(value)
}

/** `0.0123` as `1.2%`. */
export function formatPercent(share: number): string {
  return percent.format(share)
}

const units = ['B', 'kB', 'MB', 'GB', 'TB']

/** Bytes in decimal units: `1500` as `1.5 kB`. */
export function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3))
  return `${Number((bytes / 1_000 ** power).toPrecision(3))} ${units[power]}`
}
