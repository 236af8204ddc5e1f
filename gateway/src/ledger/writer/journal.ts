import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { encodeRecord, findRecords, type RecordHead, recordHeadBytes } from './record-format.ts'

/** Content of a record in a spool file. */
export type StoredPayload = {
  /** Bytes. */
  readonly size: number
  /** Throws if the file cannot be read. */
  read(): Buffer
  /** Releases the space; the file is removed with its last record. Never throws. */
  remove(): void
}

export type StoredRecord = RecordHead & StoredPayload

/** Spool files of one process, or of an earlier one. */
export type Journal = {
  /** Appends a record. Throws if it cannot be written; then the file has no part of it. */
  append(head: RecordHead, payload: Buffer): StoredPayload
  /** Bytes of the files. */
  bytes(): number
  /** Starts a new file if the current one was removed by another process. */
  checkFile(): void
  /** Closes the files, and removes those without records. */
  close(): void
}

/** A file with records. It is removed with the last of them. */
type Segment = { readonly path: string; readonly descriptor: number; end: number; live: number }

/** Payloads that are also in memory, so that they are not read back. */
const maxCachedBytes = 8 * 1024 * 1024
const maxSegmentBytes = 8 * 1024 * 1024

/**
 * Creates the journal of a process. `name` is the start of the file names. Files are not synchronised: they
 * survive the end of the process, and not a power failure.
 */
export function createJournal(folder: string, name: string): Journal {
  const segments = new Set<Segment>()
  let current: Segment | undefined
  let sequence = 0
  let cached = 0

  function open(): Segment {
    sequence += 1
    const path = join(folder, `${name}-${String(sequence).padStart(8, '0')}.spool`)
    const segment = { path, descriptor: openSync(path, 'wx+', 0o600), end: 0, live: 0 }
    segments.add(segment)
    return segment
  }

  function drop(segment: Segment): void {
    segments.delete(segment)
    if (segment === current) current = undefined
    closeAndUnlink(segment)
  }

  function release(segment: Segment): void {
    segment.live -= 1
    if (segment.live > 0) return
    if (segment !== current || !truncates(segment)) drop(segment)
  }

  return {
    append(head, payload) {
      if (current !== undefined && current.end >= maxSegmentBytes) current = undefined
      current ??= open()
      const segment = current
      const record = encodeRecord(head, payload)
      const at = segment.end
      try {
        writeFully(segment.descriptor, record, at)
      } catch (error) {
        // Later records follow in another file: a torn record ends this one.
        current = undefined
        if (segment.live === 0) drop(segment)
        else cutOff(segment, at)
        throw error
      }
      segment.end = at + record.length
      segment.live += 1
      let copy = cached + payload.length <= maxCachedBytes ? payload : undefined
      if (copy !== undefined) cached += copy.length
      return {
        size: payload.length,
        read: () => copy ?? readFully(segment, at + recordHeadBytes, payload.length),
        remove() {
          if (copy !== undefined) cached -= copy.length
          copy = undefined
          release(segment)
        },
      }
    },
    bytes: () => [...segments].reduce((sum, { end }) => sum + end, 0),
    checkFile() {
      if (current !== undefined && fstatSync(current.descriptor).nlink === 0) current = undefined
    },
    close() {
      current = undefined
      for (const segment of segments) {
        if (segment.live === 0) drop(segment)
        else closeSync(segment.descriptor)
      }
    },
  }
}

/**
 * Opens a spool file of another process. Its records are in the order of the file. Throws if the file cannot
 * be read.
 */
export function openSpoolFile(path: string): { records: StoredRecord[]; damaged: number; bytes: number } {
  const descriptor = openSync(path, 'r')
  const file = readFileSync(descriptor)
  const { records, damaged } = findRecords(file)
  const segment: Segment = { path, descriptor, end: file.length, live: records.length }
  if (records.length === 0) closeAndUnlink(segment)
  const stored = records.map(({ offset, bytes: size, ...head }): StoredRecord => {
    return {
      ...head,
      size,
      read: () => readFully(segment, offset, size),
      remove() {
        segment.live -= 1
        if (segment.live === 0) closeAndUnlink(segment)
      },
    }
  })
  return { records: stored, damaged, bytes: file.length }
}

function closeAndUnlink({ path, descriptor }: Segment): void {
  closeSync(descriptor)
  try {
    unlinkSync(path)
  } catch {
    // Another process has removed it, or the folder is not writable: its records are written already.
  }
}

function writeFully(descriptor: number, bytes: Buffer, at: number): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(descriptor, bytes, written, bytes.length - written, at + written)
  }
}

function readFully({ path, descriptor }: Segment, at: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size)
  for (let read = 0; read < size; ) {
    const count = readSync(descriptor, bytes, read, size - read, at + read)
    if (count === 0) throw new Error(`the spool file ${path} is shorter than its records`)
    read += count
  }
  return bytes
}

function truncates(segment: Segment): boolean {
  try {
    ftruncateSync(segment.descriptor, 0)
    segment.end = 0
    return true
  } catch {
    return false
  }
}

function cutOff(segment: Segment, end: number): void {
  try {
    ftruncateSync(segment.descriptor, end)
  } catch {
    // A torn last record is ignored by readers.
  }
}
