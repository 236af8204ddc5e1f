import { createHash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { rereadConfigFile } from '../load/config-file.ts'

export type WatchOptions = {
  /** The whole text of the file, each time it differs from what was seen before, or can be read again after an error. */
  onChange(text: string): void
  /** The file, or watching it, fails; called once until it works again or fails differently. Watching goes on. */
  onError(error: Error): void
  /** The text that is in use already. Without it the first reading is a change. */
  text?: string
  /** How long the file must stay as it is before it is read. */
  debounceMs?: number
  /** How often to look when nothing is heard: some mounts send no events. */
  pollMs?: number
}

export type Watcher = { close(): void }

/** How long events are gathered before the file is looked at. */
const gatherMs = 50
/** A file that never holds still is read in the end. */
const maxRounds = 20

/**
 * Watches one file: written in place, replaced by a rename, deleted and made again, or reached through a symbolic link
 * that is turned elsewhere. Errors are reported, never thrown.
 */
export function watchFile(file: string, options: WatchOptions): Watcher {
  const { debounceMs = 250, pollMs = 5_000 } = options
  /** A digest, because the text may be large. */
  let known = options.text === undefined ? undefined : digest(options.text)
  /** What the file looked like when it was last read. */
  let seen: string | undefined
  let lastError: string | undefined
  let closed = false
  let busy = false
  /** Something was heard that the look under way may have missed. */
  let again = false
  const folders = new Map<string, FSWatcher>()

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

  /** Waits until the file holds still, then reads it. If it looks as it did then, nothing is read. */
  async function look(): Promise<void> {
    // A log beside the file may write all the time: many events are one look.
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

  /** Events come from folders, because a file that is replaced takes its own watch with it. */
  async function watchFolders(): Promise<void> {
    const wanted = new Set([dirname(file), dirname(await realpath(file).catch(() => file))])
    if (closed) return
    for (const [folder, watcher] of folders) {
      if (wanted.has(folder)) continue
      watcher.close()
      folders.delete(folder)
    }
    for (const folder of wanted) if (!folders.has(folder)) watchFolder(folder)
  }

  function watchFolder(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, heard)
      // The poll watches the folder anew.
      watcher.on('error', () => forget(folder))
      folders.set(folder, watcher)
    } catch {
      // No more watches, or no such folder: the poll goes on looking, and reports a file that is gone.
    }
  }

  function forget(folder: string): void {
    folders.get(folder)?.close()
    folders.delete(folder)
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
      for (const watcher of folders.values()) watcher.close()
      folders.clear()
    },
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

/** Changes whenever the content may have: another file, or another state of it. */
async function appearance(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
  }
}
