import type { MetricRegistry } from './families.ts'

/** Meter of the configuration source. */
export type ConfigMeter = {
  /** Whether the running configuration equals its source. */
  configSynchronized(synchronized: boolean): void
  /** Whether the database of config resources responds. Not called in a process without one. */
  configDatabase(connected: boolean): void
  /**
   * State of the configuration stream; `confirmedAtMs` is the last confirmation by the controller, since the
   * Unix epoch. Called in a proxy of a cluster only.
   */
  configStream(connected: boolean, confirmedAtMs: number | undefined): void
}

export function createConfigMeter(registry: MetricRegistry): ConfigMeter {
  const synchronized = registry
    .gauge({
      name: 'tollgate_config_synchronized',
      help: '1 if the running configuration equals its sources, 0 after a rejected change or during a database outage.',
      labels: [],
    })
    .slot()
  const database = registry.gauge({
    name: 'tollgate_config_database_connected',
    help: '1 if the database of config resources responds, 0 during an outage. Absent without a database.',
    labels: [],
  })
  const stream = registry.gauge({
    name: 'tollgate_config_stream_connected',
    help: '1 if the configuration stream of the controller is open, else 0. Absent outside of clusters.',
    labels: [],
  })
  const confirmed = registry.gauge({
    name: 'tollgate_config_confirmed_timestamp_seconds',
    help: 'Time at which the controller confirmed the configuration last, in seconds since the Unix epoch. Absent outside of clusters.',
    labels: [],
  })
  return {
    configSynchronized(value) {
      synchronized.value = value ? 1 : 0
    },
    configDatabase(connected) {
      database.slot().value = connected ? 1 : 0
    },
    configStream(connected, confirmedAtMs) {
      stream.slot().value = connected ? 1 : 0
      if (confirmedAtMs !== undefined) confirmed.slot().value = confirmedAtMs / 1_000
    },
  }
}
