import { createHash } from 'node:crypto'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { rereadConfigFile } from '../load/config-file.ts'
import { createFolderWatches } from './folder-watches.ts'

export type WatchOptions = {
  /**
   * Called with the text of the file after each change of content, and when it is readable again after an
   * error.
   */
  onChange(text: string): void
  /**
   * Called once per failure to read or watch the file, until it succeeds or fails differently. Watching
   * continues.
   */
  onError(error: Error): void
  /** The text in use. Without it the first read counts as a change. */
  text?: string
  /** Time without changes before the file is read. */
  debounceMs?: number
  /** Interval of checks without events: some mounts send none. */
  pollMs?: number
}

export type Watcher = { close(): void }

/** Time to collect events before a check. */
const gatherMs = 50
/** Bound for a file that changes continuously. */
const maxRounds = 20

/**
 * Watches one file for in-place writes, replacement by a rename, deletion and creation, and changes of
 * symbolic links. Errors are reported, never thrown.
 */
export function watchFile(file: string, options: WatchOptions): Watcher {
  const { debounceMs = 250, pollMs = 5_000 } = options
  /** A digest, because the text may be large. */
  let known = options.text === undefined ? undefined : digest(options.text)
  /** File status at the last read. */
  let seen: string | undefined
  let lastError: string | undefined
  let closed = false
  let busy = false
  /** An event occurred that the check in progress may have missed. */
  let again = false
  const folders = createFolderWatches(heard)

  function heard(): void {
    again = true
    if (!busy) void attend()
  }

  async function attend(): Promise<void> {
    busy = true
    while (again && !closed) {
      again = false
      await look()
    }
    busy = false
  }

  /** Waits until the file is stable, then reads it. Skips the read if its status is unchanged. */
  async function look(): Promise<void> {
    // A log file in the same folder may send events continuously: many events are one check.
    await setTimeout(gatherMs, undefined, { ref: false })
    let now = await appearance(file)
    if (now === seen && lastError === undefined) return
    for (let round = 0; round < maxRounds; round++) {
      await setTimeout(debounceMs, undefined, { ref: false })
      if (closed) return
      const later = await appearance(file)
      if (later === now) break
      now = later
    }
    await read(now)
  }

  async function read(looks: string): Promise<void> {
    const result = await rereadConfigFile(file).then(
      (content) => ({ content }),
      (error: Error) => ({ error }),
    )
    if (closed) return
    seen = looks
    if ('error' in result) return fail(result.error)
    const recovered = lastError !== undefined
    lastError = undefined
    await watchFolders()
    const now = digest(result.content)
    if (closed || (now === known && !recovered)) return
    known = now
    options.onChange(result.content)
  }

  function fail(error: Error): void {
    if (error.message === lastError) return
    lastError = error.message
    options.onError(error)
  }

  /** Watches folders: a file that is replaced loses its watch. */
  async function watchFolders(): Promise<void> {
    const wanted = [dirname(file), dirname(await realpath(file).catch(() => file))]
    if (!closed) folders.set(wanted)
  }

  const poll = setInterval(() => {
    void watchFolders()
    heard()
  }, pollMs).unref()
  void watchFolders().then(heard)

  return {
    close() {
      closed = true
      clearInterval(poll)
      folders.close()
    },
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

/** Text that changes with every change of the file: identity, size and times. */
async function appearance(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
  }
}
