import { type HeaderField, staticTable } from './static-table.ts'

/** Indexes of fields, and of the first field with a name. */
const indexes = new Map<string, number>()
const nameIndexes = new Map<string, number>()
for (const [position, [name, value]] of staticTable.entries()) {
  indexes.set(`${name}\n${value}`, position + 1)
  if (!nameIndexes.has(name)) nameIndexes.set(name, position + 1)
}

/**
 * Encodes header fields without the dynamic table, so that encoded fields are the same on every connection.
 * Names and values have one character per byte.
 */
export function encodeFields(fields: readonly HeaderField[]): Buffer {
  return Buffer.concat(fields.map(encodeField))
}

function encodeField([name, value]: HeaderField): Buffer {
  const index = indexes.get(`${name}\n${value}`)
  if (index !== undefined) return Buffer.from([0x80 | index])
  const nameIndex = nameIndexes.get(name)
  // Never indexed (RFC 7541 section 7.1.3), also by intermediaries: fields may be credentials.
  const begin =
    nameIndex === undefined ? [Buffer.from([0x10]), encodeString(name)] : [integer(0x10, 4, nameIndex)]
  return Buffer.concat([...begin, encodeString(value)])
}

function encodeString(text: string): Buffer {
  return Buffer.concat([integer(0, 7, text.length), Buffer.from(text, 'latin1')])
}

/** RFC 7541 section 5.1. */
function integer(pattern: number, prefix: number, value: number): Buffer {
  const mask = 2 ** prefix - 1
  if (value < mask) return Buffer.from([pattern | value])
  const bytes = [pattern | mask]
  let rest = value - mask
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  bytes.push(rest)
  return Buffer.from(bytes)
}
