import type { MessageWriter } from './message-writer.ts'

/*
 * google.protobuf.Struct fields = 1 (map of Value); ListValue values = 1; Value null_value = 1,
 * number_value = 2, string_value = 3, bool_value = 4, struct_value = 5, list_value = 6
 */

/** Deeper values are null. */
const maxDepth = 32

// A member of a oneof is written even if it has the default value.
const nullValue = Buffer.from([1 << 3, 0])
const emptyText = Buffer.from([(3 << 3) | 2, 0])
const falseValue = Buffer.from([4 << 3, 0])

/** Writes the members of an object as the fields of a Struct. */
export function writeStruct(writer: MessageWriter, value: object, depth = 0): void {
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    writer.begin(1)
    writer.text(1, name)
    writer.begin(2)
    writeValue(writer, member, depth + 1)
    writer.end()
    writer.end()
  }
}

function writeValue(writer: MessageWriter, value: unknown, depth: number): void {
  if (value === '') writer.encoded(emptyText)
  else if (typeof value === 'string') writer.text(3, value)
  else if (typeof value === 'number' || typeof value === 'bigint') writer.double(2, Number(value))
  else if (value === true) writer.boolean(4, true)
  else if (value === false) writer.encoded(falseValue)
  else if (value instanceof Uint8Array) writer.text(3, Buffer.from(value).toString('base64'))
  else if (typeof value !== 'object' || value === null || depth > maxDepth) writer.encoded(nullValue)
  else if (Array.isArray(value)) writeList(writer, value, depth)
  else {
    writer.begin(5)
    writeStruct(writer, value, depth)
    writer.end()
  }
}

function writeList(writer: MessageWriter, values: readonly unknown[], depth: number): void {
  writer.begin(6)
  for (const value of values) {
    writer.begin(1)
    writeValue(writer, value, depth + 1)
    writer.end()
  }
  writer.end()
}
