/** The start of an incomplete line. */
export type LineBuffer = {
  readonly size: number
  add(bytes: Buffer): void
  /** Returns the buffered bytes followed by `rest`, and empties the buffer. */
  flush(rest: Buffer): Buffer
}

const emptyBuffer = Buffer.alloc(0)

/**
 * Copies into a buffer that doubles, so that a line in many small chunks costs no more than in few large
 * ones.
 */
export function createLineBuffer(): LineBuffer {
  let buffer = emptyBuffer
  let size = 0
  return {
    get size() {
      return size
    },
    add(bytes) {
      const needed = size + bytes.length
      if (needed > buffer.length) {
        const larger = Buffer.allocUnsafe(needed * 2)
        buffer.copy(larger, 0, 0, size)
        buffer = larger
      }
      bytes.copy(buffer, size)
      size = needed
    },
    flush(rest) {
      if (size === 0) return rest
      const line = Buffer.concat([buffer.subarray(0, size), rest])
      buffer = emptyBuffer
      size = 0
      return line
    },
  }
}
