import { reasonsOf } from '../config/config-rejected.ts'
import type { FileSource } from '../config/live/file-source.ts'
import type { ConfigSource, LiveConfig } from '../config/live/live.ts'
import { watchUsedFiles } from '../config/live/used-files.ts'
import { type Watcher, watchFile } from '../config/live/watch.ts'
import { rereadConfigFile } from '../config/load/config-file.ts'
import { messageOf } from '../lib/thrown.ts'
import type { Resources } from '../resources/resources.ts'
import type { Log } from '../telemetry/log.ts'
import { restartNeeded } from './control-plane.ts'

export type ReloadOptions = {
  file: string
  log: Log
  source: FileSource
  live: LiveConfig
  resources: Resources
  /** Evicts the content of a file that the configuration names. */
  evictFile(path: string): Promise<void>
}

/** Reloads on changes of the configuration file and of the files that it names. */
export type Reload = {
  /**
   * Watches the configuration file; `text` is its text in use. The files that it names are watched from each
   * commit on.
   */
  watch(text: string): void
  close(): void
}

export function createReload(options: ReloadOptions): Reload {
  const { file, log, source, live, resources, evictFile } = options
  let state: { kind: 'idle' } | { kind: 'watching'; watcher: Watcher } | { kind: 'closed' } = { kind: 'idle' }

  const usedFiles = watchUsedFiles({
    onChange: (path) => void live.exclusive(() => recompile(path)),
    onError: (path, error) =>
      log.warn({ file: path, reason: messageOf(error) }, 'a file of the configuration cannot be read'),
  })
  live.onCommit((_config, files) => usedFiles.watch(files))

  /** Compiles the same configuration with the new content of a file that it names. */
  async function recompile(path: string): Promise<void> {
    if (state.kind === 'closed') return
    try {
      await evictFile(path)
      await resources.reapply()
      log.info(
        { revision: live.status.revision, file: path },
        'configuration compiled again for a changed file',
      )
    } catch (error) {
      reject('namedFiles', error)
    }
  }

  /** Reads the file again: the API may have written to it since the watcher read it. */
  async function reload(): Promise<void> {
    if (state.kind === 'closed') return
    try {
      const next = await source.load(await rereadConfigFile(file))
      if (next === source.current) {
        live.report('file', undefined)
        if (!live.status.synchronized) await resources.reapply()
        log.debug({ file }, 'configuration unchanged')
        return
      }
      await resources.useFile(next)
      live.report('file', undefined)
      if (source.accept(next)) log.warn({}, restartNeeded)
      log.info({ revision: live.status.revision }, 'configuration reloaded')
    } catch (error) {
      reject('file', error)
    }
  }

  function reject(from: ConfigSource, error: unknown): void {
    const reasons = reasonsOf(error)
    live.report(from, reasons.join('\n'))
    for (const reason of reasons)
      log.error({ reason }, 'configuration rejected, the previous one keeps running')
  }

  return {
    watch(text) {
      const watcher = watchFile(file, {
        text,
        onChange: () => void live.exclusive(reload),
        onError(error) {
          live.report('file', messageOf(error))
          log.error(
            { reason: messageOf(error) },
            'the configuration file cannot be read, the previous one keeps running',
          )
        },
      })
      state = { kind: 'watching', watcher }
    },
    close() {
      if (state.kind === 'watching') state.watcher.close()
      state = { kind: 'closed' }
      usedFiles.close()
    },
  }
}
