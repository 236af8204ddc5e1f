import { readdirSync, readFileSync, statSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSpoolFile, type StoredRecord } from './journal.ts'
import type { SpoolPlace } from './protocol.ts'

/** Process that owns spool files, as in its heartbeat file. */
export type Owner = { readonly host: string; readonly pid: number }

export type OrphanOptions = {
  place: SpoolPlace
  /** Source of this process. */
  source: string
  owner: Owner
  /** Whether a process of this host is running. */
  isRunning(pid: number): boolean
}

/** Spool files of other processes in the folder, and the heartbeat of this one. */
export type Orphans = {
  /** Updates the heartbeat. Throws if the folder is not writable. */
  beat(): void
  /** Sources with spool files whose process has ended. */
  find(): string[]
  /** Opens the spool files of a source. Records are in the order of their numbers, each number once. */
  open(source: string): { records: StoredRecord[]; damaged: number; bytes: number }
  /** Removes the heartbeat of a source without spool files. */
  forget(source: string): void
  /** Removes the own heartbeat: the next process opens the rest at once. */
  close(): void
}

/** Without a heartbeat for this time, a process of another host has ended. */
const staleAfterMs = 30_000
/** Another process may have the id of the ended one. */
const reusedAfterMs = 3_600_000
const sourceForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function createOrphans({ place, source: own, owner, isRunning }: OrphanOptions): Orphans {
  const { folder, prefix } = place
  const beatPath = (source: string) => join(folder, `${prefix}-${source}.alive`)

  /** Milliseconds since the heartbeat, by the clock of the file system. */
  function ageOf(source: string): number {
    return statSync(beatPath(own)).mtimeMs - statSync(beatPath(source)).mtimeMs
  }

  function hasEnded(source: string): boolean {
    try {
      const ageMs = ageOf(source)
      const { host, pid } = readOwner(readFileSync(beatPath(source), 'utf8'))
      if (host !== owner.host) return ageMs > staleAfterMs
      // After a restart of a container, this process has the id of the previous one.
      return pid === owner.pid || !isRunning(pid) || ageMs > reusedAfterMs
    } catch {
      // No heartbeat, or not a complete one: the process has ended.
      return true
    }
  }

  function filesOf(source: string): string[] {
    return readdirSync(folder)
      .filter((name) => name.startsWith(`${prefix}-${source}-`) && name.endsWith('.spool'))
      .sort()
  }

  function unlink(path: string): void {
    try {
      unlinkSync(path)
    } catch {
      // Another process has removed it.
    }
  }

  return {
    beat() {
      try {
        const now = new Date()
        utimesSync(beatPath(own), now, now)
      } catch {
        writeFileSync(beatPath(own), JSON.stringify(owner), { mode: 0o600 })
      }
    },
    find() {
      const sources = new Set<string>()
      for (const name of readdirSync(folder)) {
        if (!name.startsWith(`${prefix}-`)) continue
        const source = name.slice(prefix.length + 1, prefix.length + 37)
        if (sourceForm.test(source) && source !== own) sources.add(source)
      }
      return [...sources].filter(hasEnded)
    },
    open(source) {
      const found: StoredRecord[] = []
      let damaged = 0
      let bytes = 0
      for (const name of filesOf(source)) {
        const file = openSpoolFile(join(folder, name))
        found.push(...file.records)
        damaged += file.damaged
        bytes += file.bytes
      }
      return { records: distinct(found), damaged, bytes }
    },
    forget(source) {
      if (filesOf(source).length === 0) unlink(beatPath(source))
    },
    close: () => unlink(beatPath(own)),
  }
}

/**
 * Sorts records by number, and removes those that are part of another one: a process that ended between the
 * compaction of records and their removal leaves both.
 */
export function distinct(records: readonly StoredRecord[]): StoredRecord[] {
  const sorted = [...records].sort((one, other) => one.first - other.first || other.number - one.number)
  const kept: StoredRecord[] = []
  for (const record of sorted) {
    if (record.number > (kept.at(-1)?.number ?? 0)) kept.push(record)
    else record.remove()
  }
  return kept
}

function readOwner(text: string): Owner {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || !('host' in value) || !('pid' in value))
    throw new Error('not a heartbeat file')
  return { host: String(value.host), pid: Number(value.pid) }
}
