import type { MetricDump } from '../metrics/dump.ts'
import type { MetricRegistry } from '../metrics/families.ts'
import { preferredFormat } from './accepted-format.ts'
import { renderOpenMetrics } from './open-metrics.ts'
import { encodeFamilies } from './protobuf.ts'

export type RenderedMetrics = { readonly contentType: string; readonly body: Buffer }

/**
 * Renders all metrics in the format that an `accept` header prefers: OpenMetrics, which has exemplars, the
 * protobuf format of Prometheus, which also has native histograms, or its text format. `others` are series of
 * data planes.
 */
export async function renderMetrics(
  registry: Pick<MetricRegistry, 'collect' | 'render'>,
  accept: string,
  others: readonly MetricDump[] = [],
): Promise<RenderedMetrics> {
  const format = preferredFormat(accept)
  if (format.kind === 'openmetrics') {
    const body = Buffer.from(renderOpenMetrics(await registry.collect(others)))
    const contentType = `application/openmetrics-text; version=${format.version}; charset=utf-8`
    return { contentType, body }
  }
  if (format.kind === 'protobuf') {
    const contentType =
      'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited'
    return { contentType, body: encodeFamilies(await registry.collect(others)) }
  }
  const { contentType, text } = await registry.render(others)
  return { contentType, body: Buffer.from(text) }
}
