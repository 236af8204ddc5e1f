import { isDeepStrictEqual } from 'node:util'
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
   * The current configuration, and that of the latest call of `next`, with `config.*` as written. Unchanged
   * parts are the same objects.
   */
  readonly written: { readonly current: Config; readonly latest: Config }
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
  /** Whether the current version has changes that need a restart. */
  needsRestart(): boolean
}

export function createConfigVersions({ first, yieldPoint }: ConfigVersionsOptions): ConfigVersions {
  const started = first.config ?? {}
  let current = { written: first, config: first }
  let loaded = current

  function withStarted(written: Config): Config {
    const { logging: { level } = {}, modelCatalog, tracing } = written.config ?? {}
    const isStarted =
      level === started.logging?.level && modelCatalog === started.modelCatalog && tracing === started.tracing
    if (isStarted) return { ...written, config: first.config }
    const fixed = withoutReloadable(started)
    const logging = { ...fixed.logging, ...(level && { level }) }
    const hasLogging = started.logging !== undefined || level !== undefined
    return {
      ...written,
      config: {
        ...fixed,
        ...(hasLogging && { logging }),
        ...(modelCatalog && { modelCatalog }),
        ...(tracing && { tracing }),
      },
    }
  }

  return {
    get current() {
      return current.config
    },
    get written() {
      return { current: current.written, latest: loaded.written }
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
    // Not by identity: a change may have been undone.
    needsRestart: () => !isDeepStrictEqual(settingsAtStart(first), settingsAtStart(current.written)),
  }
}

type Settings = NonNullable<Config['config']>

/** Settings that are read at start: all but `logging.level`, `modelCatalog` and `tracing`. */
function withoutReloadable({
  modelCatalog: _,
  tracing: _tracing,
  logging = {},
  ...fixed
}: Settings): Settings {
  const { level: _level, ...read } = logging
  return Object.keys(read).length === 0 ? fixed : { ...fixed, logging: read }
}

function settingsAtStart({ config = {} }: Config): Settings {
  const { logging, ...settings } = withoutReloadable(config)
  return logging === undefined || Object.keys(logging).length === 0 ? settings : { ...settings, logging }
}

function needsRestart({ config: previous = {} }: Config, { config: next = {} }: Config): boolean {
  const { logging: before, ...one } = withoutReloadable(previous)
  const { logging: after, ...other } = withoutReloadable(next)
  return !hasSameMembers(one, other) || !hasSameMembers(before ?? {}, after ?? {})
}

/** Compares members by identity: unchanged parts of two versions are the same objects. */
function hasSameMembers(one: object, other: object): boolean {
  const before = new Map<string, unknown>(Object.entries(one))
  const after = Object.entries(other)
  return before.size === after.length && after.every(([key, value]) => before.get(key) === value)
}
