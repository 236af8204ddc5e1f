import { type Watcher, watchFile } from '../config/live/watch.ts'
import { rereadConfigFile } from '../config/load/config-file.ts'
import type { Environment } from '../config/load/environment.ts'
import type { Config } from '../config/schema.ts'
import type { ConfigFeed } from './config-feed.ts'
import { acceptedConfig, isSmallText, loadConfig } from './config-tasks.ts'
import type { RunConfigTask } from './worker-tasks.ts'

export type FileFeedOptions = { file: string; env: Environment; runTask: RunConfigTask }

/** The configuration file. Large texts are loaded on another thread. */
export function createFileFeed({ file, env, runTask }: FileFeedOptions): ConfigFeed {
  let text = ''
  let watcher: Watcher | undefined
  async function load(text: string): Promise<Config> {
    const request = { text, file, env }
    return acceptedConfig(isSmallText(text) ? loadConfig(request) : await runTask('load', request))
  }
  return {
    origin: { kind: 'file', file, load },
    async read() {
      text = await rereadConfigFile(file)
      return load(text)
    },
    watch({ changed, failed }) {
      watcher = watchFile(file, { text, onChange: changed, onError: failed })
    },
    settled() {},
    close() {
      watcher?.close()
    },
  }
}
