/** Value of the one series of that name whose labels include the given ones; undefined when there is none. */
export function metricValue(
  text: string,
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const matching = seriesOf(text, name).filter((series) =>
    Object.entries(labels).every(([label, value]) => series.labels[label] === value),
  )
  if (matching.length === 0) return undefined
  return matching.reduce((sum, series) => sum + series.value, 0)
}

/** All series of a metric. */
export function seriesOf(text: string, name: string): { labels: Record<string, string>; value: number }[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .map((line) => {
      const labels = [...line.matchAll(/([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"/g)].map((match) => [
        match[1] ?? '',
        match[2] ?? '',
      ])
      return { labels: Object.fromEntries(labels), value: Number(line.slice(line.lastIndexOf(' ') + 1)) }
    })
}
