import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import { type FieldValue, readMessage } from '../../lib/protobuf/message-reader.ts'
import type { MessageWriter } from '../../lib/protobuf/message-writer.ts'
import { InvalidDecision } from './decision.ts'

/*
 * google.protobuf.Struct fields = 1 (map of Value); ListValue values = 1; Value null_value = 1,
 * number_value = 2, string_value = 3, bool_value = 4, struct_value = 5, list_value = 6
 */

/** Nesting limit in both directions. Deeper values are null when sent, and refused when received. */
const maxDepth = 32

// A member of a oneof is written even if it has the default value.
const nullValue = Buffer.from([1 << 3, 0])
const emptyText = Buffer.from([(3 << 3) | 2, 0])
const falseValue = Buffer.from([4 << 3, 0])

/** Writes the members of a map as the fields of a Struct. */
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
  if (typeof value === 'string') {
    if (value === '') writer.encoded(emptyText)
    else writer.text(3, value)
  } else if (typeof value === 'number' || typeof value === 'bigint') writer.double(2, Number(value))
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

/** Reads a Struct. Throws `RangeError` or `InvalidDecision`. */
export function readStruct(message: FieldValue, depth = 0): JsonObject {
  if (depth > maxDepth) throw new InvalidDecision('the metadata of the response is nested too deeply')
  const entries: [string, JsonValue][] = []
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) entries.push(readEntry(value, depth))
  })
  return Object.fromEntries(entries)
}

function readEntry(message: FieldValue, depth: number): [string, JsonValue] {
  let name = ''
  let content: JsonValue = null
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) name = value.text()
    else if (field === 2) content = readValue(value, depth)
  })
  return [name, content]
}

function readValue(message: FieldValue, depth: number): JsonValue {
  let content: JsonValue = null
  readMessage(message.bytes(), (field, value) => {
    if (field === 2) content = value.double()
    else if (field === 3) content = value.text()
    else if (field === 4) content = value.boolean()
    else if (field === 5) content = readStruct(value, depth + 1)
    else if (field === 6) content = readList(value, depth + 1)
  })
  return content
}

function readList(message: FieldValue, depth: number): JsonValue[] {
  if (depth > maxDepth) throw new InvalidDecision('the metadata of the response is nested too deeply')
  const values: JsonValue[] = []
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) values.push(readValue(value, depth))
  })
  return values
}
