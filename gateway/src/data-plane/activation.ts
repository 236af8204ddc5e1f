import { compileConfig, type ProcessFacts } from '../config/compile.ts'
import { ConfigRejected } from '../config/config-rejected.ts'
import type { CompileCache } from '../config/live/compile-cache.ts'
import { changesEndpointsOnly } from '../config/live/endpoint-changes.ts'
import type { LiveListeners } from '../config/live/listeners.ts'
import type { PreparedSnapshot } from '../config/live/live.ts'
import { occupiedPorts } from '../config/ports.ts'
import type { Config } from '../config/schema.ts'
import { trafficSections } from '../config/traffic/sections.ts'
import { messageOf } from '../lib/thrown.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Snapshot } from '../pipeline/snapshot.ts'
import { ownPorts } from '../upstream/dynamic.ts'
import { activateEndpoints } from '../upstream/endpoints.ts'

export type ActivationOptions = {
  context: CompileContext
  cache: CompileCache
  facts: ProcessFacts
  listeners: LiveListeners
  /** Binds the memory that a compilation has requested. */
  bind(): Promise<void>
}

/** Compiles configurations and activates them on the listeners. */
export type Activation = {
  /** The active configuration; undefined before the first commit. */
  readonly config: Config | undefined
  /** Queue of metrics of the active configuration. */
  readonly metricExport: Snapshot['metricExport']
  /** As `DataPlane.prepare`. */
  prepare(config: Config): Promise<PreparedSnapshot>
  /** Evicts the content of a file, and the results compiled from it. */
  evictFile(path: string): void
}

export function createActivation(options: ActivationOptions): Activation {
  const { context, cache, facts, listeners, bind } = options
  let active: Config | undefined
  let metricExport: Snapshot['metricExport']
  /** Files of the active configuration, with their contents. */
  let files: ReadonlyMap<string, string> = new Map()
  /** Whether the active configuration was compiled from the current files. */
  let isCurrent = false

  function activate(config: Config, used: ReadonlyMap<string, string>): void {
    activateEndpoints(config.backends ?? [], context)
    active = config
    files = used
    isCurrent = true
  }

  return {
    get config() {
      return active
    },
    get metricExport() {
      return metricExport
    },
    async prepare(config) {
      if (active !== undefined && isCurrent && changesEndpointsOnly(active, config))
        return { files, commit: async () => activate(config, files), abort() {} }
      cache.begin(new Set(files.keys()))
      const snapshot = await compile(config, context, facts)
      const used = cache.files()
      await bind()
      const own = ownPorts(context)
      const before = own.ports
      const ports = occupiedPorts(config, trafficSections(config, context.cached))
      const prepared = await listeners.prepare(snapshot)
      // The new addresses accept connections before the commit, the former ones until then.
      own.ports = new Set([...before, ...ports])
      return {
        files: used,
        async commit() {
          prepared.commit()
          metricExport = snapshot.metricExport
          own.ports = ports
          activate(config, used)
        },
        abort() {
          prepared.abort()
          own.ports = before
        },
      }
    },
    evictFile(path) {
      isCurrent = false
      cache.evictFile(path)
    },
  }
}

/** Compilation fails on unreadable or invalid files. */
async function compile(config: Config, context: CompileContext, facts: ProcessFacts): Promise<Snapshot> {
  try {
    return await compileConfig(config, context, facts)
  } catch (error) {
    throw new ConfigRejected([messageOf(error)])
  }
}
