import type { Clock } from '../../lib/clock.ts'
import type { Config } from '../schema.ts'

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

/** Error of a source that is present. */
export type SourceError = {
  readonly source: ConfigSource
  readonly message: string
  /** ISO 8601. */
  readonly since: string
}

/** A configuration that compiles and whose addresses are open. Ended by `commit` or `abort`. */
export type PreparedConfig = {
  /** Activates the prepared configuration; resolves when it serves all traffic. Never rejects. */
  commit(): Promise<void>
  /** Discards it; nothing has changed. */
  abort(): void
}

/** A configuration that the data plane has prepared. */
export type PreparedSnapshot = PreparedConfig & {
  /** Contents of the files that the configuration names, by path. */
  readonly files: ReadonlyMap<string, string>
}

export type LiveConfigOptions = {
  clock: Clock
  /**
   * Compiles a configuration and opens new addresses. Throws `ConfigRejected`, or the error of an address;
   * then nothing has changed. One preparation at a time.
   */
  prepare(config: Config): Promise<PreparedSnapshot>
  onStatus(status: ConfigStatus): void
  /** Called after each change in `exclusive`, before it resolves. */
  onSettled(): Promise<void>
}

export type CommitListener = (config: Config, files: ReadonlyMap<string, string>) => void

/** The active configuration: the only owner of activation. */
export type LiveConfig = {
  readonly status: ConfigStatus
  /** Present errors of the sources. */
  errors(): readonly SourceError[]
  /** The active configuration; undefined before the first commit. */
  readonly config: Config | undefined
  /**
   * Adds a listener, called after every commit with the configuration and the contents of the files that it
   * names.
   */
  onCommit(listener: CommitListener): void
  /**
   * Compiles and opens new addresses. Throws `ConfigRejected`, or the error of an address; then nothing has
   * changed.
   */
  prepare(config: Config): Promise<PreparedConfig>
  /** Records the error of a source; undefined clears it. */
  report(source: ConfigSource, lastError: string | undefined): void
  /** Runs changes sequentially, in the order of the calls. */
  exclusive<T>(change: () => Promise<T>): Promise<T>
}

export function createLiveConfig(options: LiveConfigOptions): LiveConfig {
  const status: ConfigStatus = { synchronized: true, revision: 0, appliedAt: undefined, lastError: undefined }
  const errors = new Map<ConfigSource, SourceError>()
  const commitListeners: CommitListener[] = []
  let last: Promise<unknown> = Promise.resolve()
  let running: Config | undefined

  function report(source: ConfigSource, lastError: string | undefined): void {
    if (lastError === undefined) errors.delete(source)
    else errors.set(source, { source, message: lastError, since: sinceOf(source) })
    status.synchronized = errors.size === 0
    const messages = [...errors.values()].map(({ message }) => message)
    status.lastError = errors.size === 0 ? undefined : messages.join('\n')
    options.onStatus(status)
  }

  function sinceOf(source: ConfigSource): string {
    return errors.get(source)?.since ?? new Date(options.clock.now()).toISOString()
  }

  return {
    status,
    errors: () => [...errors.values()],
    get config() {
      return running
    },
    onCommit(listener) {
      commitListeners.push(listener)
    },
    report,
    async prepare(config) {
      const { files, commit, abort } = await options.prepare(config)
      return {
        async commit() {
          await commit()
          running = config
          status.revision += 1
          status.appliedAt = new Date(options.clock.now()).toISOString()
          for (const listener of commitListeners) listener(config, files)
          report('namedFiles', undefined)
          report('resources', undefined)
        },
        abort,
      }
    },
    exclusive<T>(change: () => Promise<T>): Promise<T> {
      const settled = () => change().finally(options.onSettled)
      const done = last.then(settled, settled)
      last = done.catch(() => undefined)
      return done
    },
  }
}
