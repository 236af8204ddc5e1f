import type { JsonObject, JsonValue } from '../../../lib/json/json.ts'
import { readMessage } from '../../../lib/protobuf/message-reader.ts'
import type { MessageWriter } from '../../../lib/protobuf/message-writer.ts'

/*
 * google.protobuf.Struct: fields = 1 (map of name = 1, value = 2). Value: null_value = 1, number_value = 2,
 * string_value = 3, bool_value = 4, struct_value = 5, list_value = 6 (values = 1).
 */

/** Nesting limit of received values. */
const maxDepth = 32

const nullValue = Uint8Array.of(8, 0)
const falseValue = Uint8Array.of(32, 0)

/** Writes the fields of a struct. */
export function writeStruct(writer: MessageWriter, values: Iterable<readonly [string, JsonValue]>): void {
  for (const [name, value] of values) {
    writer.begin(1)
    writer.text(1, name)
    writer.begin(2)
    writeValue(writer, value)
    writer.end()
    writer.end()
  }
}

function writeValue(writer: MessageWriter, value: JsonValue): void {
  if (value === null) writer.encoded(nullValue)
  else if (typeof value === 'number') writer.double(2, value)
  else if (value === false) writer.encoded(falseValue)
  else if (value === true) writer.boolean(4, true)
  else if (typeof value === 'string') writeText(writer, value)
  else if (Array.isArray(value)) {
    writer.begin(6)
    for (const item of value) {
      writer.begin(1)
      writeValue(writer, item)
      writer.end()
    }
    writer.end()
  } else {
    writer.begin(5)
    writeStruct(writer, Object.entries(value))
    writer.end()
  }
}

/** An empty text is written, too: it selects the type of the value. */
function writeText(writer: MessageWriter, value: string): void {
  if (value !== '') {
    writer.text(3, value)
    return
  }
  writer.begin(3)
  writer.end()
}

/** Reads a struct. Throws `RangeError` if the bytes are not a struct, or on values nested too deeply. */
export function readStruct(bytes: Uint8Array, depth = 0): JsonObject {
  const entries: [string, JsonValue][] = []
  readMessage(bytes, (field, entry) => {
    if (field !== 1) return
    let name = ''
    let value: JsonValue = null
    readMessage(entry.bytes(), (part, content) => {
      if (part === 1) name = content.text()
      else if (part === 2) value = readValue(content.bytes(), depth + 1)
    })
    entries.push([name, value])
  })
  // Defines `__proto__` as any other name.
  return Object.fromEntries(entries)
}

function readValue(bytes: Uint8Array, depth: number): JsonValue {
  if (depth > maxDepth) throw new RangeError('a value is nested too deeply')
  let found: JsonValue = null
  readMessage(bytes, (field, value) => {
    if (field === 2) found = finite(value.double())
    else if (field === 3) found = value.text()
    else if (field === 4) found = value.boolean()
    else if (field === 5) found = readStruct(value.bytes(), depth)
    else if (field === 6) found = readList(value.bytes(), depth)
  })
  return found
}

function readList(bytes: Uint8Array, depth: number): JsonValue[] {
  const items: JsonValue[] = []
  readMessage(bytes, (field, value) => {
    if (field === 1) items.push(readValue(value.bytes(), depth + 1))
  })
  return items
}

/** JSON has no other numbers. */
function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}
