/** One line or one part of a stack. Values are in the order of the times of the chart; null is no value. */
export type ChartSeries = {
  readonly key: string
  readonly label: string
  readonly values: readonly (number | null)[]
  /** Number of a series colour from 1 to 8, or a meaning. */
  readonly color: SeriesColor
  /** A comparison: a dashed line, and outside of the stack. */
  readonly dashed?: boolean
}

export type SeriesColor = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 'good' | 'warn' | 'bad' | 'faint'

/** Colour of the series at an index. The eighth colour is for the rest of a group. */
export function colorAt(index: number): SeriesColor {
  return ((index % 7) + 1) as SeriesColor
}

/** CSS variable of a series colour. */
export function colorVariable(color: SeriesColor): string {
  if (typeof color === 'number') return `--series-${color}`
  return color === 'faint' ? '--ink-faint' : `--${color}`
}

/** Cumulative sums of the series that are not dashed: the first is the lowest part. Null counts as 0. */
export function stack(series: readonly ChartSeries[]): (number | null)[][] {
  const length = series[0]?.values.length ?? 0
  const sums = new Array<number>(length).fill(0)
  return series.map(({ values, dashed }) => {
    if (dashed) return [...values]
    return values.map((value, index) => {
      sums[index] = (sums[index] ?? 0) + (value ?? 0)
      return sums[index] ?? 0
    })
  })
}

/** A CSS colour with an opacity: `oklch(…)`, `lab(…)`, `rgb(…)` with spaces, or `#rrggbb`. Others are unchanged. */
export function withAlpha(color: string, alpha: number): string {
  const text = color.trim()
  if (/^#[\da-f]{6}$/i.test(text))
    return (
      text +
      Math.round(alpha * 255)
        .toString(16)
        .padStart(2, '0')
    )
  if (/^[a-z]+\([^,/]*\)$/i.test(text)) return `${text.slice(0, -1)} / ${alpha})`
  return text
}
