/**
 * Encoder of protobuf messages (https://protobuf.dev/programming-guides/encoding/). Fields with the default
 * value of proto3 are omitted.
 */
export type MessageWriter = {
  /** Starts a message. Discards one that is not finished, because its encoder failed. */
  start(): void
  text(field: number, value: string): void
  bytes(field: number, value: Uint8Array): void
  /** An integer in the safe range; negative ones take ten bytes, as in int32 and int64. */
  integer(field: number, value: number): void
  boolean(field: number, value: boolean): void
  double(field: number, value: number): void
  /** A fixed64 as its lower and upper 32 bits. */
  fixed64(field: number, low: number, high: number): void
  fixed32(field: number, value: number): void
  /** Starts a nested message, also of a map entry. Empty ones are written. */
  begin(field: number): void
  end(): void
  /** Fields that are encoded already. */
  encoded(fields: Uint8Array): void
  /** Returns a copy of the message and starts the next one. */
  finish(): Uint8Array
}

const varintType = 0
const fixed64Type = 1
const lengthDelimitedType = 2
const fixed32Type = 5

/** A larger buffer of one message is not retained for the next. */
const retainedBytes = 64 * 1024

export function createMessageWriter(): MessageWriter {
  let buffer = Buffer.allocUnsafe(4096)
  let position = 0
  const starts: number[] = []

  function reserve(bytes: number): void {
    if (position + bytes <= buffer.byteLength) return
    const larger = Buffer.allocUnsafe(Math.max(2 * buffer.byteLength, position + bytes))
    buffer.copy(larger, 0, 0, position)
    buffer = larger
  }

  function varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      buffer[position++] = (rest % 0x80) + 0x80
      rest = Math.floor(rest / 0x80)
    }
    buffer[position++] = rest
  }

  function tag(field: number, type: number): void {
    reserve(20)
    varint(field * 8 + type)
  }

  /** Writes the length in front of content that begins `gap` bytes behind the current position. */
  function insertLength(length: number, gap: number): void {
    const size = varintSize(length)
    if (size !== gap) {
      reserve(size + length)
      buffer.copyWithin(position + size, position + gap, position + gap + length)
    }
    varint(length)
    position += length
  }

  return {
    start() {
      position = 0
      starts.length = 0
    },
    text(field, value) {
      if (value === '') return
      tag(field, lengthDelimitedType)
      const longest = 3 * value.length
      reserve(longest + 5)
      const gap = varintSize(value.length)
      insertLength(buffer.write(value, position + gap), gap)
    },
    bytes(field, value) {
      if (value.byteLength === 0) return
      tag(field, lengthDelimitedType)
      reserve(value.byteLength + 5)
      varint(value.byteLength)
      buffer.set(value, position)
      position += value.byteLength
    },
    integer(field, value) {
      if (value === 0) return
      tag(field, varintType)
      if (value > 0) varint(value)
      else {
        let rest = BigInt.asUintN(64, BigInt(value))
        for (; rest >= 0x80n; rest >>= 7n) buffer[position++] = Number(rest & 0x7fn) | 0x80
        buffer[position++] = Number(rest)
      }
    },
    boolean(field, value) {
      if (!value) return
      tag(field, varintType)
      varint(1)
    },
    double(field, value) {
      tag(field, fixed64Type)
      position = buffer.writeDoubleLE(value, position)
    },
    fixed64(field, low, high) {
      tag(field, fixed64Type)
      position = buffer.writeUInt32LE(low, position)
      position = buffer.writeUInt32LE(high, position)
    },
    fixed32(field, value) {
      tag(field, fixed32Type)
      position = buffer.writeUInt32LE(value, position)
    },
    begin(field) {
      tag(field, lengthDelimitedType)
      starts.push(position)
      // Most nested messages are shorter than 128 bytes, so that their length is one byte.
      position += 1
    },
    end() {
      const start = starts.pop()
      if (start === undefined) throw new Error('message is not nested')
      const length = position - start - 1
      reserve(5)
      position = start
      insertLength(length, 1)
    },
    encoded(fields) {
      reserve(fields.byteLength)
      buffer.set(fields, position)
      position += fields.byteLength
    },
    finish() {
      const message = new Uint8Array(buffer.subarray(0, position))
      position = 0
      if (buffer.byteLength > retainedBytes) buffer = Buffer.allocUnsafe(4096)
      return message
    },
  }
}

function varintSize(value: number): number {
  let size = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1
  return size
}
