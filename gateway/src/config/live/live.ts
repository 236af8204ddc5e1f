import { messageOf } from '../../lib/thrown.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { activateEndpoints } from '../../upstream/endpoints.ts'
import { compileConfig, type ProcessFacts } from '../compile.ts'
import { ConfigRejected } from '../config-rejected.ts'
import type { Config } from '../schema.ts'
import type { CompileCache } from './compile-cache.ts'
import { changesEndpointsOnly } from './endpoint-changes.ts'
import type { LiveListeners } from './listeners.ts'

/** Status of the configuration in the admin API. */
export type ConfigStatus = {
  /** Whether the active configuration equals the sources. */
  synchronized: boolean
  /** Number of configurations applied since the start. */
  revision: number
  /** ISO 8601. */
  appliedAt: string | undefined
  lastError: string | undefined
}

/**
 * Source of configuration: the file, the files that it names, and config resources, in hybrid mode of a
 * database. An outage of the database makes its latest state unknown. The active configuration consists of
 * all sources, so a commit clears the errors of named files and resources; the file may still have an error.
 */
export type ConfigSource = 'file' | 'namedFiles' | 'resources' | 'database'

/** A configuration that compiles and whose addresses are open. Ended by `commit` or `abort`. */
export type PreparedConfig = {
  /** Activates the prepared configuration. */
  commit(): void
  /** Discards it; nothing has changed. */
  abort(): void
}

export type LiveConfigOptions = {
  context: CompileContext
  cache: CompileCache
  facts: ProcessFacts
  listeners: LiveListeners
  onStatus(status: ConfigStatus): void
}

export type CommitListener = (config: Config, files: ReadonlyMap<string, string>) => void

/** The active configuration: the only owner of activation. */
export type LiveConfig = {
  readonly status: ConfigStatus
  /** The active configuration; undefined before the first commit. */
  readonly config: Config | undefined
  /**
   * Adds a listener, called after every commit with the configuration and the contents of the files that it
   * names.
   */
  onCommit(listener: CommitListener): void
  /**
   * Compiles and opens new addresses; a change of endpoints needs neither. Throws `ConfigRejected`, or the
   * error of an address; then nothing has changed.
   */
  prepare(config: Config): Promise<PreparedConfig>
  /** Records the error of a source; undefined clears it. */
  report(source: ConfigSource, lastError: string | undefined): void
  /** Runs changes sequentially, in the order of the calls. */
  exclusive<T>(change: () => Promise<T>): Promise<T>
}

export function createLiveConfig(options: LiveConfigOptions): LiveConfig {
  const { context, cache, facts, listeners } = options
  const status: ConfigStatus = { synchronized: true, revision: 0, appliedAt: undefined, lastError: undefined }
  const errors = new Map<ConfigSource, string>()
  const commitListeners: CommitListener[] = []
  let last: Promise<unknown> = Promise.resolve()
  let running: Config | undefined
  /** Files of the active configuration, with their contents. */
  let files: ReadonlyMap<string, string> = new Map()

  function report(source: ConfigSource, lastError: string | undefined): void {
    if (lastError === undefined) errors.delete(source)
    else errors.set(source, lastError)
    status.synchronized = errors.size === 0
    status.lastError = errors.size === 0 ? undefined : [...errors.values()].join('\n')
    options.onStatus(status)
  }

  function activate(config: Config, used: ReadonlyMap<string, string>): void {
    activateEndpoints(config.backends ?? [], context)
    running = config
    status.revision += 1
    status.appliedAt = new Date(context.clock.now()).toISOString()
    files = used
    for (const listener of commitListeners) listener(config, files)
    report('namedFiles', undefined)
    report('resources', undefined)
  }

  return {
    status,
    get config() {
      return running
    },
    onCommit(listener) {
      commitListeners.push(listener)
    },
    report,
    async prepare(config) {
      const isCompiled = !errors.has('namedFiles') && !errors.has('resources')
      if (running !== undefined && isCompiled && changesEndpointsOnly(running, config)) {
        return { commit: () => activate(config, files), abort() {} }
      }
      cache.begin(new Set(files.keys()))
      const snapshot = await compile(config, context, facts)
      const used = cache.files()
      const prepared = await listeners.prepare(snapshot)
      return {
        commit() {
          prepared.commit()
          activate(config, used)
        },
        abort: prepared.abort,
      }
    },
    exclusive<T>(change: () => Promise<T>): Promise<T> {
      const done = last.then(change, change)
      last = done.catch(() => undefined)
      return done
    },
  }
}

/** Compilation fails on unreadable or invalid files. */
async function compile(config: Config, context: CompileContext, facts: ProcessFacts) {
  try {
    return await compileConfig(config, context, facts)
  } catch (error) {
    throw new ConfigRejected([messageOf(error)])
  }
}
