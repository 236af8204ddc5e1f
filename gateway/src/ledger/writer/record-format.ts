import { crc32 } from 'node:zlib'

/** Head of a spool record: numbers of the batches that it contains, and its lines. */
export type RecordHead = {
  readonly first: number
  readonly number: number
  /** Lines of the payload. */
  readonly rows: number
}

export type FoundRecord = RecordHead & {
  /** Position and size of the payload in the file, in bytes. */
  readonly offset: number
  readonly bytes: number
}

/** The first byte is never part of UTF-8, so that the next record is found after a damaged one. */
const magic = Buffer.from([0xff, 0x54, 0x47, 0x01])
/** Magic, length, rows, first, number; then the checksum over them and the payload. */
const checksumAt = 28
export const recordHeadBytes = 32
/** A larger length is damage. */
const maxPayloadBytes = 256 * 1024 * 1024

/** Bytes of a record: head, then payload. */
export function encodeRecord({ first, number, rows }: RecordHead, payload: Uint8Array): Buffer {
  const record = Buffer.allocUnsafe(recordHeadBytes + payload.length)
  magic.copy(record)
  record.writeUInt32LE(payload.length, 4)
  record.writeUInt32LE(rows, 8)
  record.writeBigUInt64LE(BigInt(first), 12)
  record.writeBigUInt64LE(BigInt(number), 20)
  record.set(payload, recordHeadBytes)
  record.writeUInt32LE(checksumOf(record), checksumAt)
  return record
}

/**
 * Finds the complete records of a file. `damaged` counts places with bytes that belong to no complete record,
 * except at the end: a process that was killed leaves a torn last record.
 */
export function findRecords(file: Buffer): { records: FoundRecord[]; damaged: number } {
  const records: FoundRecord[] = []
  let damaged = 0
  let at = 0
  while (at < file.length) {
    const found = recordAt(file, at)
    if (found !== undefined) {
      records.push(found)
      at = found.offset + found.bytes
      continue
    }
    const next = nextRecord(file, at + 1)
    if (next === undefined) break
    damaged += 1
    at = next
  }
  return { records, damaged }
}

/** Position of the next complete record. */
function nextRecord(file: Buffer, from: number): number | undefined {
  for (let at = file.indexOf(magic, from); at >= 0; at = file.indexOf(magic, at + 1)) {
    if (recordAt(file, at) !== undefined) return at
  }
  return undefined
}

function recordAt(file: Buffer, at: number): FoundRecord | undefined {
  const offset = at + recordHeadBytes
  if (offset > file.length || !file.subarray(at, at + magic.length).equals(magic)) return undefined
  const bytes = file.readUInt32LE(at + 4)
  if (bytes > maxPayloadBytes || offset + bytes > file.length) return undefined
  const record = file.subarray(at, offset + bytes)
  if (record.readUInt32LE(checksumAt) !== checksumOf(record)) return undefined
  const first = Number(record.readBigUInt64LE(12))
  const number = Number(record.readBigUInt64LE(20))
  if (first < 1 || number < first || !Number.isSafeInteger(number)) return undefined
  return { first, number, rows: record.readUInt32LE(8), offset, bytes }
}

function checksumOf(record: Buffer): number {
  return crc32(record.subarray(recordHeadBytes), crc32(record.subarray(0, checksumAt)))
}
