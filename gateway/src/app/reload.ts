import { reasonsOf } from '../config/config-rejected.ts'
import type { ConfigVersions } from '../config/live/config-versions.ts'
import type { ConfigSource, LiveConfig } from '../config/live/live.ts'
import { watchUsedFiles } from '../config/live/used-files.ts'
import { messageOf } from '../lib/thrown.ts'
import type { Resources } from '../resources/resources.ts'
import type { Log } from '../telemetry/log.ts'
import type { ConfigFeed } from './config-feed.ts'
import { restartNeeded } from './control-plane.ts'

export type ReloadOptions = {
  feed: ConfigFeed
  log: Log
  versions: ConfigVersions
  live: LiveConfig
  resources: Resources
  /** Evicts the content of a file that the configuration names. */
  evictFile(path: string): Promise<void>
}

/** Reloads on changes of the source of the configuration and of the files that it names. */
export type Reload = {
  /** Watches the source. The files that the configuration names are watched from each commit on. */
  watch(): void
  close(): void
}

export function createReload(options: ReloadOptions): Reload {
  const { feed, log, versions, live, resources, evictFile } = options
  let isClosed = false

  const usedFiles = watchUsedFiles({
    onChange: (path) => void live.exclusive(() => recompile(path)),
    onError: (path, error) =>
      log.warn({ file: path, reason: messageOf(error) }, 'a file of the configuration cannot be read'),
  })
  live.onCommit((_config, files) => usedFiles.watch(files))

  /** Compiles the same configuration with the new content of a file that it names. */
  async function recompile(path: string): Promise<void> {
    if (isClosed) return
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

  /** Reads the source again: the API may have written to a file since the watcher read it. */
  async function reload(): Promise<void> {
    if (isClosed) return
    try {
      const next = await versions.next(await feed.read())
      if (next === versions.current) {
        live.report('file', undefined)
        if (!live.status.synchronized) await resources.reapply()
        feed.settled({ kind: 'active' })
        log.debug({}, 'configuration unchanged')
        return
      }
      await resources.useFile(next)
      live.report('file', undefined)
      feed.settled({ kind: 'active' })
      if (versions.accept(next)) log.warn({}, restartNeeded)
      log.info({ revision: live.status.revision }, 'configuration reloaded')
    } catch (error) {
      const reasons = reject('file', error)
      feed.settled({ kind: 'rejected', reasons })
    }
  }

  function reject(from: ConfigSource, error: unknown): readonly string[] {
    const reasons = reasonsOf(error)
    live.report(from, reasons.join('\n'))
    for (const reason of reasons)
      log.error({ reason }, 'configuration rejected, the previous one keeps running')
    return reasons
  }

  return {
    watch() {
      feed.watch({
        changed: () => void live.exclusive(reload),
        failed(error) {
          live.report('file', messageOf(error))
          log.error(
            { reason: messageOf(error) },
            'the configuration cannot be read, the previous one keeps running',
          )
        },
      })
    },
    close() {
      isClosed = true
      feed.close()
      usedFiles.close()
    },
  }
}
