import { createHash, randomBytes } from 'node:crypto'
import * as nodeFiles from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { maxFileBytes } from './config-file.ts'

export type FileWriting =
  | { kind: 'written' }
  /** The text of the file differs from the expected text: another process changed it. Nothing is written. */
  | { kind: 'changed' }
  /** Nothing is written; the message contains the reason and the fix. */
  | { kind: 'refused'; message: string }

/** Functions of `node:fs/promises` in use. */
export type Files = Pick<
  typeof nodeFiles,
  'access' | 'open' | 'readFile' | 'readdir' | 'realpath' | 'rename' | 'rm' | 'stat'
>

export type WriteOptions = {
  /** The current text of the file, as read. */
  expected: string
  files?: Files
}

/**
 * Replaces the text of a file atomically: readers, and a power failure, see either the old text or the new
 * one. The new text is on disk when this resolves with `written`. A new file replaces the old one, with its
 * owner, mode and byte order mark; of a symbolic link, the target is replaced. Other hard links retain the
 * old text.
 */
export async function writeFileAtomically(
  path: string,
  text: string,
  { expected, files = nodeFiles }: WriteOptions,
): Promise<FileWriting> {
  const bytes = Buffer.from(text)
  if (bytes.length > maxFileBytes) return refused(path, 'it would be larger than 32 MiB')
  try {
    const target = await files.realpath(path)
    return await replaceFile({ files, path, target, bytes, expected: Buffer.from(expected) })
  } catch (error) {
    const problem = problemOf(error)
    if (problem === undefined) throw error
    return refused(path, problem)
  }
}

type Replacement = { files: Files; path: string; target: string; bytes: Buffer; expected: Buffer }

async function replaceFile(replacement: Replacement): Promise<FileWriting> {
  const { files, path, target, expected } = replacement
  const original = await files.stat(target)
  if (!original.isFile()) return refused(path, 'it is not a regular file')
  // A rename needs permissions of the folder only; a read-only file must not be replaced.
  if ((original.mode & 0o222) === 0) return refused(path, 'it is read-only')
  await files.access(target, nodeFiles.constants.W_OK)
  const before = await files.readFile(target)
  if (!holds(before, expected)) return { kind: 'changed' }
  await removeLeftovers(files, target)
  const temporary = join(dirname(target), temporaryName(target))
  try {
    const mark = startsWithMark(before) && !startsWithMark(replacement.bytes) ? byteOrderMark : noBytes
    await writeNew(files, temporary, { bytes: Buffer.concat([mark, replacement.bytes]), original })
    // Compare again as late as possible: writing takes time.
    if (!holds(await files.readFile(target), expected)) return { kind: 'changed' }
    await files.rename(temporary, target)
  } finally {
    // After the rename there is nothing to remove.
    await files.rm(temporary, { force: true })
  }
  await syncFolder(files, dirname(target))
  return { kind: 'written' }
}

const byteOrderMark = Buffer.from('\uFEFF')
const noBytes = Buffer.alloc(0)

function startsWithMark(bytes: Buffer): boolean {
  return bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark)
}

/** A text has no byte order mark, so it matches a file with one. */
function holds(bytes: Buffer, expected: Buffer): boolean {
  if (bytes.equals(expected)) return true
  return startsWithMark(bytes) && bytes.subarray(byteOrderMark.length).equals(expected)
}

type NewFile = { bytes: Buffer; original: { uid: number; gid: number; mode: number } }

async function writeNew(files: Files, path: string, { bytes, original }: NewFile): Promise<void> {
  // Unreadable for other users until it has the mode of the original: it may contain secrets.
  const file = await files.open(path, 'wx', 0o600)
  try {
    const made = await file.stat()
    if (made.uid !== original.uid || made.gid !== original.gid) await file.chown(original.uid, original.gid)
    await file.chmod(original.mode & 0o7777)
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/**
 * Without the sync a power failure could revert the rename. Some file systems do not support it, and some
 * folders are unreadable.
 */
async function syncFolder(files: Files, folder: string): Promise<void> {
  try {
    const handle = await files.open(folder, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (!unsyncable.has(codeOf(error))) throw error
  }
}

const unsyncable = new Set(['EINVAL', 'ENOTSUP', 'EPERM', 'EACCES', 'EISDIR', 'EBADF'])

/** Age at which temporary files of other machines are removed. */
const abandonedAfterMs = 10 * 60_000

/** Name with the target, and with the machine, the process and its start time: process ids are reused. */
function temporaryName(target: string): string {
  const { machine, pid, start } = maker()
  return `${temporaryPrefix(target)}${machine}-${pid}-${start}-${randomBytes(6).toString('hex')}.tmp`
}

function temporaryPrefix(target: string): string {
  return `.tollgate-${shortHash(basename(target))}-`
}

function maker(): { machine: string; pid: string; start: string } {
  const start = Math.floor(performance.timeOrigin).toString(36)
  return { machine: shortHash(hostname()), pid: String(process.pid), start }
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 10)
}

/** Removes temporary files of killed processes. */
async function removeLeftovers(files: Files, target: string): Promise<void> {
  const folder = dirname(target)
  const prefix = temporaryPrefix(target)
  const names = await files.readdir(folder).catch(() => [])
  for (const name of names) {
    if (!name.startsWith(prefix) || !name.endsWith('.tmp')) continue
    const path = join(folder, name)
    if (await isLeftover(files, path, name.slice(prefix.length))) await files.rm(path, { force: true })
  }
}

async function isLeftover(files: Files, path: string, madeBy: string): Promise<boolean> {
  const [machine, pid = '', start] = madeBy.split('-')
  const own = maker()
  if (machine === own.machine) {
    if (pid === own.pid) return start !== own.start
    if (!isRunning(Number(pid))) return true
  }
  const { mtimeMs } = await files.stat(path)
  return Date.now() - mtimeMs > abandonedAfterMs
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // The process exists, but may not be signalled.
    return codeOf(error) === 'EPERM'
  }
}

function refused(path: string, problem: string): FileWriting {
  return { kind: 'refused', message: `cannot write the configuration file ${path}: ${problem}` }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

function problemOf(error: unknown): string | undefined {
  switch (codeOf(error)) {
    case 'ENOENT':
      return 'there is no such file'
    case 'EACCES':
      return 'permission denied for the file or its folder'
    case 'EPERM':
      return 'the new file cannot have the owner and mode of the old one; the user of the gateway must own it'
    case 'EROFS':
      return 'it is on a read-only file system'
    case 'ENOSPC':
    case 'EDQUOT':
      return 'there is no space left on its disk'
    case 'EBUSY':
    case 'EXDEV':
      return 'it is a mount point and cannot be replaced; mount its folder instead'
    case 'ELOOP':
      return 'its symbolic links form a loop'
    case 'EMFILE':
    case 'ENFILE':
      return 'too many files are open'
    case 'EIO':
      return 'the disk reports an error'
    default:
      return undefined
  }
}
