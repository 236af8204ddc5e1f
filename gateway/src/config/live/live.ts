import { messageOf } from '../../lib/thrown.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { compileConfig, type ProcessFacts } from '../compile.ts'
import { ConfigRejected } from '../config-rejected.ts'
import type { Config } from '../schema.ts'
import type { CompileCache } from './compile-cache.ts'
import type { LiveListeners } from './listeners.ts'

/** What the admin API tells of the running configuration. */
export type ConfigStatus = {
  /** Whether what runs is what the sources say. */
  synchronized: boolean
  /** Number of configurations applied since the start. */
  revision: number
  /** ISO 8601. */
  appliedAt: string | undefined
  lastError: string | undefined
}

/**
 * Where a configuration comes from: the file, the other files it names, and config resources, which a database has. While the
 * database is away, its latest state is not known. What runs is made of all of them,
 * so a commit settles what the latter two had said; the file alone may still say something else.
 */
export type ConfigSource = 'file' | 'namedFiles' | 'resources' | 'database'

/** A configuration that compiles and whose ports are open. Ended by one of the two. */
export type PreparedConfig = {
  /** Makes it what runs. */
  commit(): void
  /** Leaves everything as it was. */
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

/** The one place where a Config becomes what runs, whoever changed it. */
export type LiveConfig = {
  readonly status: ConfigStatus
  /** What runs; undefined before the first. */
  readonly config: Config | undefined
  /** Adds a listener, called after every commit with the configuration and the contents of the files that it names. */
  onCommit(listener: CommitListener): void
  /** Compiles and opens new ports. Throws `ConfigRejected`, or the error of a port; nothing has changed then. */
  prepare(config: Config): Promise<PreparedConfig>
  /** Notes that a source says something that cannot run; undefined that it agrees with what runs. */
  report(source: ConfigSource, lastError: string | undefined): void
  /** Runs changes one after another, in the order they came. */
  exclusive<T>(change: () => Promise<T>): Promise<T>
}

export function createLiveConfig(options: LiveConfigOptions): LiveConfig {
  const { context, cache, facts, listeners } = options
  const status: ConfigStatus = { synchronized: true, revision: 0, appliedAt: undefined, lastError: undefined }
  const errors = new Map<ConfigSource, string>()
  const commitListeners: CommitListener[] = []
  let last: Promise<unknown> = Promise.resolve()
  let running: Config | undefined
  /** Files of what runs. */
  let watched: ReadonlySet<string> = new Set()

  function report(source: ConfigSource, lastError: string | undefined): void {
    if (lastError === undefined) errors.delete(source)
    else errors.set(source, lastError)
    status.synchronized = errors.size === 0
    status.lastError = errors.size === 0 ? undefined : [...errors.values()].join('\n')
    options.onStatus(status)
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
      cache.begin(watched)
      const snapshot = await compile(config, context, facts)
      const files = cache.files()
      const prepared = await listeners.prepare(snapshot)
      return {
        commit() {
          prepared.commit()
          running = config
          status.revision += 1
          status.appliedAt = new Date(context.clock.now()).toISOString()
          watched = new Set(files.keys())
          for (const listener of commitListeners) listener(config, files)
          report('namedFiles', undefined)
          report('resources', undefined)
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

/** Compiling can still fail on what only the file system knows. */
async function compile(config: Config, context: CompileContext, facts: ProcessFacts) {
  try {
    return await compileConfig(config, context, facts)
  } catch (error) {
    throw new ConfigRejected([messageOf(error)])
  }
}
