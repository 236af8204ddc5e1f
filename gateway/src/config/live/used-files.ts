import { type Watcher, watchFile } from './watch.ts'

export type UsedFilesOptions = {
  /** A file differs from what the configuration was compiled with. */
  onChange(path: string): void
  onError(path: string, error: Error): void
}

/** Watches the files a configuration leads to: certificates, keys, credentials. */
export type UsedFiles = {
  /** Watches exactly these from now on; each with the content that is in use. */
  watch(files: ReadonlyMap<string, string>): void
  close(): void
}

export function watchUsedFiles({ onChange, onError }: UsedFilesOptions): UsedFiles {
  const watchers = new Map<string, Watcher>()

  return {
    watch(files) {
      for (const [path, watcher] of watchers) {
        if (files.has(path)) continue
        watcher.close()
        watchers.delete(path)
      }
      for (const [path, text] of files) {
        if (watchers.has(path)) continue
        const watcher = watchFile(path, {
          text,
          onChange: () => onChange(path),
          onError: (error) => onError(path, error),
        })
        watchers.set(path, watcher)
      }
    },
    close() {
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}
