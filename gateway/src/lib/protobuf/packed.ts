/** The encoding of sint32 and sint64. */
export function zigzag(value: number): number {
  return value >= 0 ? 2 * value : -2 * value - 1
}

/** Packed integers, which may be zero. */
export function varints(values: readonly number[]): Uint8Array {
  const bytes: number[] = []
  for (let value of values) {
    for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80)
    bytes.push(value)
  }
  return Uint8Array.from(bytes)
}
