/** A value of the Distinguished Encoding Rules (X.690) within a buffer. */
export type DerValue = {
  readonly tag: number
  readonly content: Buffer
  /** The value with its tag and length. */
  readonly bytes: Buffer
}

const longForm = 0x80

/** Reads the values of a sequence. Throws if the text ends within a value. */
export function readDer(bytes: Buffer): DerValue[] {
  const values: DerValue[] = []
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes.readUInt8(at)
    const first = bytes.readUInt8(at + 1)
    const lengthBytes = first < longForm ? 0 : first - longForm
    // Certificates are shorter than 4 GiB.
    if (lengthBytes > 4 || first === longForm) throw new RangeError('invalid length')
    const start = at + 2 + lengthBytes
    const end = start + (lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes))
    if (end > bytes.length) throw new RangeError('value is incomplete')
    values.push({ tag, content: bytes.subarray(start, end), bytes: bytes.subarray(at, end) })
    at = end
  }
  return values
}
