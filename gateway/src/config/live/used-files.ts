import { type Watcher, watchFile } from './watch.ts'

export type UsedFilesOptions = {
  /** The content of a file differs from the content in use. */
  onChange(path: string): void
  onError(path: string, error: Error): void
}

/** Watches the files that a configuration names: certificates, keys, credentials. */
export type UsedFiles = {
  /** Replaces the watched files. The map contains the content in use by path. */
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
