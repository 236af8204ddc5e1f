import type { MetricRegistry } from './families.ts'

/** Meter of the configuration source. */
export type ConfigMeter = {
  /** Whether the running configuration equals its source. */
  configSynchronized(synchronized: boolean): void
  /** Whether the database of config resources responds. Not called in a process without one. */
  configDatabase(connected: boolean): void
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
  return {
    configSynchronized(value) {
      synchronized.value = value ? 1 : 0
    },
    configDatabase(connected) {
      database.slot().value = connected ? 1 : 0
    },
  }
}
