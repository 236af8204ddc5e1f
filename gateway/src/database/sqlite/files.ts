import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Creates the folder and the file of a database, accessible to the current user only. */
export function createPrivateFile(path: string): void {
  createFolder(dirname(path))
  // Before SQLite writes to it: an existing mode would expose the first rows.
  closeSync(openSync(path, 'a', 0o600))
  for (const file of [path, ...logFiles(path)]) restrictAccess(file)
}

/** Write-ahead log and its shared-memory index. */
export function logFiles(path: string): readonly string[] {
  return [`${path}-wal`, `${path}-shm`]
}

/** Device and inode: different after the file was replaced. */
export function identifyFile(file: string): string {
  const { dev, ino } = statSync(file, { bigint: true })
  return `${dev}:${ino}`
}

/**
 * One level per call: recursive `mkdir` never returns on file systems that ignore the creation of folders
 * (/proc).
 */
function createFolder(folder: string): void {
  if (folderExists(folder)) return
  if (dirname(folder) !== folder) createFolder(dirname(folder))
  if (!folderExists(folder)) throw new Error(`its folder ${folder} cannot be created`)
}

/**
 * Creates the folder if its parent exists; false otherwise. Other processes may create it at the same time.
 */
function folderExists(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 })
    syncFolder(dirname(folder))
    return true
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'EEXIST' && code !== 'ENOENT') throw error
    return code === 'EEXIST'
  }
}

/** Writes the entry of a new folder to disk. SQLite does so for the files inside. */
function syncFolder(folder: string): void {
  let descriptor: number | undefined
  try {
    descriptor = openSync(folder, 'r')
    fsyncSync(descriptor)
  } catch {
    // The folder is writable but not readable, or the platform does not synchronise folders.
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

function restrictAccess(file: string): void {
  try {
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
  } catch {
    // The file does not exist, or belongs to another user.
  }
}
