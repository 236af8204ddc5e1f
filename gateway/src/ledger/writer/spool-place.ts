import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { sqlitePathOf } from '../../database/url.ts'
import type { LedgerSettings } from '../config.ts'
import type { SpoolPlace } from './protocol.ts'

/** Folder and file prefix of the spool. `temporary` is the folder of the system for temporary files. */
export function spoolPlaceOf({ url, kind, spool }: LedgerSettings, temporary: string): SpoolPlace {
  if (kind === 'sqlite') {
    const path = resolve(sqlitePathOf(url))
    // The default folder moves together with the file.
    return spool === undefined
      ? { folder: `${path}.spool`, prefix: digest(basename(path)) }
      : { folder: resolve(spool), prefix: digest(path) }
  }
  const { hostname, port, pathname } = readUrl(url)
  const prefix = digest(JSON.stringify([hostname, port, pathname]))
  return {
    folder: spool === undefined ? join(temporary, `tollgate-spool-${prefix}`) : resolve(spool),
    prefix,
  }
}

/**
 * Creates the folder for the current user. Throws if another user can write to it: the spool contains entries
 * that this process writes to its database.
 */
export function openSpoolFolder(folder: string, uid: number | undefined): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const status = lstatSync(folder)
  if (!status.isDirectory()) throw new Error(`the spool folder ${folder} is not a folder`)
  if (uid === undefined) return
  if (status.uid !== uid) throw new Error(`the spool folder ${folder} must belong to the user of the gateway`)
  if ((status.mode & 0o022) !== 0)
    throw new Error(`the spool folder ${folder} must not be writable for other users: chmod 700 it`)
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

function readUrl(url: string): { hostname: string; port: string; pathname: string } {
  try {
    return new URL(url)
  } catch {
    // The address of a socket; only the identity matters.
    return { hostname: url, port: '', pathname: '' }
  }
}
