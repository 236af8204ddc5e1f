import { decodeHuffman } from './huffman.ts'
import { type HeaderField, staticTable } from './static-table.ts'

/** Decoder of the header blocks of one connection, in their order (RFC 7541). */
export type HeaderDecoder = {
  /**
   * Returns the fields of a complete header block; undefined if they exceed the limit, after which further
   * blocks can be decoded. Throws `RangeError` for an invalid block, which ends the connection.
   */
  decode(block: Uint8Array): HeaderField[] | undefined
}

/** SETTINGS_HEADER_TABLE_SIZE that this client permits: the default of HTTP/2. */
const maxTableBytes = 4_096
/** Size of a field beyond its name and value. */
const fieldOverhead = 32
const maxInteger = 2 ** 28

type Decoding = {
  /** Fields of the dynamic table, the oldest first. */
  readonly table: HeaderField[]
  tableBytes: number
  limitBytes: number
  block: Uint8Array
  position: number
}

/** Creates a decoder. `maxListBytes` limits the fields of a block, in the size of RFC 7541 section 4.1. */
export function createHeaderDecoder(maxListBytes: number): HeaderDecoder {
  const state: Decoding = {
    table: [],
    tableBytes: 0,
    limitBytes: maxTableBytes,
    block: new Uint8Array(),
    position: 0,
  }
  return {
    decode(block) {
      state.block = block
      state.position = 0
      const fields: HeaderField[] = []
      let bytes = 0
      while (state.position < block.byteLength) {
        const field = decodeField(state, fields.length === 0)
        if (field === undefined) continue
        bytes += sizeOf(field)
        if (bytes <= maxListBytes) fields.push(field)
      }
      return bytes <= maxListBytes ? fields : undefined
    },
  }
}

/** Decodes the next field; undefined for a change of the size of the table. */
function decodeField(state: Decoding, isFirst: boolean): HeaderField | undefined {
  const byte = state.block[state.position] ?? 0
  if (byte >= 0x80) return fieldAt(state, integer(state, 7))
  if (byte >= 0x40) {
    const field = literal(state, 6)
    add(state, field)
    return field
  }
  if (byte < 0x20) return literal(state, 4)
  const limit = integer(state, 5)
  if (limit > maxTableBytes || !isFirst) throw new RangeError('a size of the header table is not permitted')
  state.limitBytes = limit
  evict(state, limit)
  return undefined
}

function literal(state: Decoding, prefix: number): HeaderField {
  const index = integer(state, prefix)
  const name = index === 0 ? string(state) : fieldAt(state, index)[0]
  return [name, string(state)]
}

function fieldAt({ table }: Decoding, index: number): HeaderField {
  const field =
    index <= staticTable.length ? staticTable[index - 1] : table[table.length + staticTable.length - index]
  if (field === undefined) throw new RangeError('a header field has an unknown index')
  return field
}

function add(state: Decoding, field: HeaderField): void {
  const bytes = sizeOf(field)
  evict(state, state.limitBytes - bytes)
  if (bytes > state.limitBytes) return
  state.table.push(field)
  state.tableBytes += bytes
}

/** Removes the oldest fields until the table has at most so many bytes. */
function evict(state: Decoding, bytes: number): void {
  while (state.tableBytes > bytes) {
    const oldest = state.table.shift()
    if (oldest === undefined) return
    state.tableBytes -= sizeOf(oldest)
  }
}

function sizeOf([name, value]: HeaderField): number {
  return name.length + value.length + fieldOverhead
}

/** RFC 7541 section 5.1. */
function integer(state: Decoding, prefix: number): number {
  const { block } = state
  const mask = 2 ** prefix - 1
  let value = (block[state.position++] ?? 0) & mask
  if (value < mask) return value
  for (let factor = 1; ; factor *= 128) {
    const byte = block[state.position++]
    if (byte === undefined) throw new RangeError('a header block ends within an integer')
    value += (byte & 0x7f) * factor
    if (value > maxInteger || factor > maxInteger) throw new RangeError('a header block has a large integer')
    if (byte < 0x80) return value
  }
}

function string(state: Decoding): string {
  const { block } = state
  const isCoded = (block[state.position] ?? 0) >= 0x80
  const length = integer(state, 7)
  const start = state.position
  const end = start + length
  if (end > block.byteLength) throw new RangeError('a header block ends within a string')
  state.position = end
  if (isCoded) return decodeHuffman(block, start, end)
  return Buffer.from(block.buffer, block.byteOffset + start, length).toString('latin1')
}
