/** Value of a field of a protobuf message. Its methods throw `RangeError` on another type on the wire. */
export type FieldValue = {
  text(): string
  /** A view on the message. */
  bytes(): Uint8Array
  /** An int32, int64, enum or uint32 in the safe range; others are rounded. */
  integer(): number
  boolean(): boolean
  double(): number
}

const noData = Buffer.alloc(0)

/**
 * Calls `read` with each field of a message, in order. Throws `RangeError` unless the bytes are a message;
 * deprecated groups are refused, too.
 */
export function readMessage(message: Uint8Array, read: (field: number, value: FieldValue) => void): void {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
  let position = 0
  let type = 0
  let number: number | bigint = 0
  let data: Buffer = noData

  const value: FieldValue = {
    text: () => delimited().toString(),
    bytes() {
      const { buffer, byteOffset, byteLength } = delimited()
      return new Uint8Array(buffer, byteOffset, byteLength)
    },
    integer() {
      if (type !== 0) throw unexpectedType()
      return Number(BigInt.asIntN(64, BigInt(number)))
    },
    boolean() {
      if (type !== 0) throw unexpectedType()
      return Number(number) !== 0
    },
    double() {
      if (type !== 1) throw unexpectedType()
      return data.readDoubleLE()
    },
  }

  function delimited(): Buffer {
    if (type !== 2) throw unexpectedType()
    return data
  }

  function varint(): number | bigint {
    let small = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = bytes[position++]
      if (byte === undefined) throw truncated()
      small += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return small
    }
    let large = BigInt(small)
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = bytes[position++]
      if (byte === undefined) throw truncated()
      large += BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return large
    }
    throw new RangeError('an integer is longer than ten bytes')
  }

  function take(length: number): Buffer {
    if (length > bytes.byteLength - position) throw truncated()
    position += length
    return bytes.subarray(position - length, position)
  }

  while (position < bytes.byteLength) {
    const tag = Number(varint())
    type = tag % 8
    const field = Math.floor(tag / 8)
    if (field < 1 || field > 0x1fff_ffff) throw new RangeError('a field number is not valid')
    if (type === 0) number = varint()
    else if (type === 1) data = take(8)
    else if (type === 2) data = take(Number(varint()))
    else if (type === 5) data = take(4)
    else throw new RangeError('a field has an unsupported wire type')
    read(field, value)
  }
}

function unexpectedType(): RangeError {
  return new RangeError('a field has an unexpected wire type')
}

function truncated(): RangeError {
  return new RangeError('the message is truncated')
}
