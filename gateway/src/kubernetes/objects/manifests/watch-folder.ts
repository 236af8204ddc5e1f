import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createFolderWatches } from '../../../config/live/folder-watches.ts'
import type { Watcher } from '../../../config/live/watch.ts'
import { type FolderState, readFolderState } from './folder.ts'

export type WatchFolderOptions = {
  /** State of the folder whose files are in use. */
  state: FolderState
  /** Called after each change of a file, and when the folder is readable again after an error. */
  onChange(): void
  /** Called once for each error of reading the folder, until it succeeds or fails differently. */
  onError(error: Error): void
  /** Time without changes before a change is reported. */
  debounceMs?: number
  /** Interval of checks without events: some mounts send none. */
  pollMs?: number
}

/** Time to collect events before a check. */
const gatherMs = 50

/** Bound for a folder that changes continuously. */
const maxRounds = 20

/** Watches the manifests of a folder and of the folders in it. Errors are reported, never thrown. */
export function watchManifestFolder(folder: string, options: WatchFolderOptions): Watcher {
  const { onChange, onError, debounceMs = 250, pollMs = 5_000 } = options
  const watches = createFolderWatches(notice)
  let seen = options.state.appearance
  let lastError: string | undefined
  let isClosed = false
  /** An event may have occurred during the check in progress. */
  let state: 'idle' | 'busy' | 'again' = 'idle'

  function notice(): void {
    if (state !== 'idle') {
      state = 'again'
      return
    }
    void attend()
  }

  async function attend(): Promise<void> {
    do {
      state = 'busy'
      await look()
    } while (isEventPending() && !isClosed)
    state = 'idle'
  }

  function isEventPending(): boolean {
    return state === 'again'
  }

  /** Waits until the folder is stable, then reports a change. */
  async function look(): Promise<void> {
    // Another file in a folder may send events continuously: many events are one check.
    await setTimeout(gatherMs, undefined, { ref: false })
    let now = await appearance()
    if (now === seen && lastError === undefined) return
    for (let round = 0; round < maxRounds; round++) {
      await setTimeout(debounceMs, undefined, { ref: false })
      if (isClosed) return
      const later = await appearance()
      if (later === now) break
      now = later
    }
    if (isClosed || now instanceof Error) return report(now)
    if (now === seen && lastError === undefined) return
    seen = now
    lastError = undefined
    onChange()
  }

  function report(error: string | Error): void {
    if (isClosed || !(error instanceof Error) || error.message === lastError) return
    lastError = error.message
    onError(error)
  }

  let latestError: Error | undefined
  async function appearance(): Promise<string | Error> {
    try {
      const { appearance, folders } = await readFolderState(folder)
      watchFolders(folders)
      return appearance
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error))
      // The same object for the same error, for comparisons.
      if (latestError?.message !== failure.message) latestError = failure
      return latestError ?? failure
    }
  }

  function watchFolders(folders: readonly string[]): void {
    // The folder itself may be replaced.
    if (!isClosed) watches.set([...folders, dirname(folder)])
  }

  watchFolders(options.state.folders)
  const poll = setInterval(notice, pollMs).unref()
  notice()
  return {
    close() {
      isClosed = true
      clearInterval(poll)
      watches.close()
    },
  }
}
