import type { Exemplar, SeriesDump } from '../metrics/dump.ts'
import type { CollectedFamily } from '../metrics/families.ts'

/**
 * Renders metrics as OpenMetrics text 1.0
 * (https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md), with exemplars.
 */
export function renderOpenMetrics(families: readonly CollectedFamily[]): string {
  return `${families.map(renderFamily).join('')}# EOF\n`
}

function renderFamily(family: CollectedFamily): string {
  const { type, help, series } = family
  // Samples of a counter have a suffix that its family has not.
  const name = type === 'counter' ? family.name.replace(/_total$/, '') : family.name
  const head = `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n`
  if (type === 'histogram') return head + series.map((each) => renderHistogram(family, each)).join('')
  const sample = type === 'counter' ? `${name}_total` : name
  const lines = series.map(
    ({ labels, values: [value = 0] }) =>
      `${sample}${labelText(labelPairs(family, labels))} ${numberText(value)}\n`,
  )
  return head + lines.join('')
}

function renderHistogram(
  family: CollectedFamily,
  { labels, values: [sum = 0, ...counts], exemplars }: SeriesDump,
): string {
  const { name, boundaries } = family
  const pairs = labelPairs(family, labels)
  let total = 0
  const buckets = counts.map((count, index) => {
    total += count
    const bucketLabels = labelText([...pairs, `le="${boundaryText(boundaries[index])}"`])
    return `${name}_bucket${bucketLabels} ${total}${exemplarText(exemplars?.[index])}\n`
  })
  const ownLabels = labelText(pairs)
  return `${buckets.join('')}${name}_sum${ownLabels} ${numberText(sum)}\n${name}_count${ownLabels} ${total}\n`
}

function exemplarText(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return ''
  const { traceId, spanId, value, at } = exemplar
  return ` # {trace_id="${traceId}",span_id="${spanId}"} ${numberText(value)} ${(at / 1000).toFixed(3)}`
}

function labelPairs({ labels: names }: CollectedFamily, values: readonly string[]): string[] {
  return names.map((name, index) => `${name}="${escaped(values[index] ?? '')}"`)
}

function labelText(pairs: readonly string[]): string {
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

/** A boundary in the canonical form, with a decimal point or an exponent (from 1e6). */
function boundaryText(boundary: number | undefined): string {
  if (boundary === undefined) return '+Inf'
  if (!Number.isInteger(boundary)) return String(boundary)
  if (boundary < 1e6) return `${boundary}.0`
  return boundary.toExponential().replace(/e\+(\d)$/, 'e+0$1')
}
