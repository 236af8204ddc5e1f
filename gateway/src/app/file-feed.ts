import { type Watcher, watchFile } from '../config/live/watch.ts'
import { rereadConfigFile } from '../config/load/config-file.ts'
import type { Environment } from '../config/load/environment.ts'
import type { Config } from '../config/schema.ts'
import type { FileIndex } from '../resources/records/file-index.ts'
import type { ConfigFeed } from './config-feed.ts'
import { acceptedConfig, isSmallText, loadConfig } from './config-tasks.ts'
import type { RunConfigTask } from './worker-tasks.ts'

export type FileFeedOptions = { file: string; env: Environment; runTask: RunConfigTask }

/** The configuration file. Large texts are loaded on another thread. */
export function createFileFeed({ file, env, runTask }: FileFeedOptions): ConfigFeed {
  let text = ''
  let watcher: Watcher | undefined
  /** Of the text loaded last, and of the active one. */
  const indexes: { loaded?: FileIndex | undefined; active?: FileIndex | undefined } = {}
  async function load(text: string): Promise<Config> {
    const request = { text, file, env }
    const outcome = isSmallText(text) ? loadConfig(request) : await runTask('load', request)
    const config = acceptedConfig(outcome)
    indexes.loaded = outcome.kind === 'config' ? outcome.index : undefined
    return config
  }
  const activate = () => {
    indexes.active = indexes.loaded
  }
  return {
    origin: { kind: 'file', file, load, activated: activate, index: () => indexes.active },
    async read() {
      text = await rereadConfigFile(file)
      return load(text)
    },
    watch({ changed, failed }) {
      watcher = watchFile(file, { text, onChange: changed, onError: failed })
    },
    settled({ kind }) {
      if (kind === 'active') activate()
    },
    close() {
      watcher?.close()
    },
  }
}
