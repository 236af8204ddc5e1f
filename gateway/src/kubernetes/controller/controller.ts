import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ControllerMeter } from '../../telemetry/metrics/controller.ts'
import type { ApiClient } from '../client/client.ts'
import { createTranslator } from '../translate/translate.ts'
import { createDebounce } from './debounce.ts'
import { watchObjects } from './watched-objects.ts'

export type ControllerOptions = {
  readonly client: ApiClient
  /** Namespaces to read; undefined for all. */
  readonly namespaces: readonly string[] | undefined
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly meter: ControllerMeter
}

/** Objects of the API server, translated and published by every replica. */
export type Controller = {
  /** Parts that are not ready. */
  pending(): readonly string[]
  /** Deploys proxies and writes statuses until the signal. */
  lead(signal: AbortSignal): void
  close(): Promise<void>
}

/** A change is visible after 10 ms; a stream of changes is translated once in a second. */
const debounceTimes = { quietMs: 10, maxMs: 1_000 }

export function startController(options: ControllerOptions): Controller {
  const { log, clock, meter } = options
  const translate = createTranslator()
  let isSynced = false

  const debounce = createDebounce(debounceTimes, clock, () => {
    const startedAt = clock.monotonic()
    const { gateways, statuses } = translate(objects.snapshot())
    const durationMs = clock.monotonic() - startedAt
    meter.translated(durationMs)
    log.debug({ gateways: gateways.size, statuses: statuses.length, durationMs }, 'objects translated')
  })

  const objects = watchObjects({
    ...options,
    changed(_kind, { isStatusOnly }) {
      if (isSynced && !isStatusOnly) debounce.request()
    },
  })
  objects.synced.then(() => {
    isSynced = true
    log.info({}, 'kubernetes objects synchronized')
    debounce.request()
  })

  return {
    pending: () => objects.pending(),
    lead() {},
    async close() {
      debounce.close()
      objects.close()
    },
  }
}
