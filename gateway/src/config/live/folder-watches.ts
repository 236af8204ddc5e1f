import { type FSWatcher, watch } from 'node:fs'

/** Watches of several folders. A folder that cannot be watched is tried again with the next `set`. */
export type FolderWatches = {
  /** Watches these folders, and no others. */
  set(folders: Iterable<string>): void
  close(): void
}

/**
 * Calls `onEvent` for each event in a watched folder. The caller also polls, because some mounts send no
 * events.
 */
export function createFolderWatches(onEvent: () => void): FolderWatches {
  const watchers = new Map<string, FSWatcher>()

  function add(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, onEvent)
      watcher.on('error', () => remove(folder))
      watchers.set(folder, watcher)
    } catch {
      // No further watches, or no such folder: the caller's poll reports a missing folder.
    }
  }

  function remove(folder: string): void {
    watchers.get(folder)?.close()
    watchers.delete(folder)
  }

  return {
    set(folders) {
      const wanted = new Set(folders)
      for (const folder of [...watchers.keys()]) if (!wanted.has(folder)) remove(folder)
      for (const folder of wanted) if (!watchers.has(folder)) add(folder)
    },
    close() {
      for (const folder of [...watchers.keys()]) remove(folder)
    },
  }
}
