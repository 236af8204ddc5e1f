import type { YieldPoint } from '../../lib/scheduling/yielding.ts'
import { ConfigRejected } from '../config-rejected.ts'
import type { Config } from '../schema.ts'
import { shareStructureInSteps } from './structural-share.ts'

export type ConfigVersionsOptions = {
  /**
   * Configuration at start. Its `config.*` applies until the process ends, except for the reloadable
   * settings.
   */
  first: Config
  yieldPoint: YieldPoint
}

/** The versions of the configuration of one source: the latest one, with `config.*` as at start. */
export type ConfigVersions = {
  readonly current: Config
  /**
   * Compares a valid configuration with the current one. Returns `current` if it is equal; otherwise
   * unchanged parts are the same objects as in `current`.
   */
  next(written: Config): Promise<Config>
  /**
   * Makes the configuration of the latest call of `next` the current one. Returns whether it contains changes
   * that need a restart.
   */
  accept(config: Config): boolean
}

/** Settings of `config` that a reload applies. All others are read at start. */
const reloadable = ['logging', 'modelCatalog'] as const

export function createConfigVersions({ first, yieldPoint }: ConfigVersionsOptions): ConfigVersions {
  const started = first.config ?? {}
  let current = { written: first, config: first }
  let loaded = current

  function withStarted(written: Config): Config {
    const { logging, modelCatalog } = written.config ?? {}
    if (logging === started.logging && modelCatalog === started.modelCatalog)
      return { ...written, config: first.config }
    const { logging: _logging, modelCatalog: _modelCatalog, ...fixed } = started
    return {
      ...written,
      config: { ...fixed, ...(logging && { logging }), ...(modelCatalog && { modelCatalog }) },
    }
  }

  return {
    get current() {
      return current.config
    },
    async next(given) {
      const written = await shareStructureInSteps(current.written, given, yieldPoint)
      loaded = written === current.written ? current : { written, config: withStarted(written) }
      return loaded.config
    },
    accept(config) {
      if (loaded.config !== config) throw new ConfigRejected(['another configuration was loaded meanwhile'])
      const previous = current
      current = loaded
      return needsRestart(previous.written, current.written)
    },
  }
}

function needsRestart({ config: previous = {} }: Config, { config: next = {} }: Config): boolean {
  const before = new Map<string, unknown>(Object.entries(previous))
  const after = new Map<string, unknown>(Object.entries(next))
  for (const key of reloadable) {
    before.delete(key)
    after.delete(key)
  }
  return before.size !== after.size || [...after].some(([key, value]) => before.get(key) !== value)
}
