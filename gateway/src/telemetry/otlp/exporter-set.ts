import type { Exporter } from './exporter.ts'

/** The exporters of a data plane. */
export type ExporterSet = {
  track(exporter: Pick<Exporter, 'flush'>): void
  /** Flushes all exporters in use, within their time limit. */
  flush(): Promise<void>
}

/** Creates an empty set. Exporters of past configurations are forgotten when their queue is empty. */
export function createExporterSet(): ExporterSet {
  let exporters: WeakRef<Pick<Exporter, 'flush'>>[] = []
  const alive = () => exporters.flatMap((reference) => reference.deref() ?? [])
  return {
    track(exporter) {
      exporters = [...exporters.filter((reference) => reference.deref() !== undefined), new WeakRef(exporter)]
    },
    async flush() {
      await Promise.all(alive().map((exporter) => exporter.flush()))
    },
  }
}
