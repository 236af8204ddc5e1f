import type { Clock } from '../../lib/clock.ts'
import { createYieldPoint } from '../../lib/scheduling/yielding.ts'
import type { Log } from '../log.ts'
import type { CollectedFamily } from '../metrics/families.ts'
import { encodeMetric } from './encode-metric.ts'

/** Periodic export of the metrics of the process. */
export type MetricExport = {
  /** Sets the interval in milliseconds; undefined ends the export. */
  use(intervalMs: number | undefined): void
  /** Exports the last values, and ends. */
  close(): Promise<void>
}

export type MetricExportOptions = {
  collect(): Promise<readonly CollectedFamily[]>
  /** Sends encoded metrics; `isLast` waits until they are sent. */
  send(batch: { readonly items: readonly Uint8Array[]; readonly isLast: boolean }): Promise<void>
  clock: Clock
  log: Pick<Log, 'warn'>
}

/** Time for the last export. */
const closeLimitMs = 5_000

/** Creates an export that does nothing before the first call of `use`. */
export function createMetricExport({ collect, send, clock, log }: MetricExportOptions): MetricExport {
  const startedAt = clock.now()
  let interval: number | undefined
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined

  async function run(isLast: boolean): Promise<void> {
    try {
      const families = await collect()
      const times = { startedAt, at: clock.now() }
      const yieldPoint = createYieldPoint(clock)
      const items: Uint8Array[] = []
      for (const family of families) {
        items.push(...encodeMetric(family, times))
        await yieldPoint()
      }
      await send({ items, isLast })
    } catch (error) {
      log.warn({ err: error }, 'metrics not exported')
    }
  }

  function tick(): void {
    // A slow collection delays no other: its values would be older.
    running ??= run(false).finally(() => {
      running = undefined
    })
  }

  async function last(): Promise<void> {
    await running
    await run(true)
  }

  return {
    use(next) {
      if (next === interval) return
      interval = next
      clearInterval(timer)
      timer = next === undefined ? undefined : setInterval(tick, next)
      timer?.unref()
    },
    async close() {
      clearInterval(timer)
      if (interval === undefined) return
      interval = undefined
      await atMost(last(), closeLimitMs)
    },
  }
}

/** Waits for work up to a time limit. */
async function atMost(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, limit])
  clearTimeout(timer)
}
