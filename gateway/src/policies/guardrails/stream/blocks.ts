/** Byte buffer that copies its chunks, because a chunk may retain a much larger underlying buffer. */
export type Blocks = {
  readonly size: number
  add(chunk: Uint8Array): void
  /** Returns and removes all bytes, in order. */
  drain(): Buffer[]
}

const blockBytes = 16 * 1024

export function createBlocks(): Blocks {
  let blocks: Buffer[] = []
  let last = Buffer.alloc(0)
  let used = 0
  let size = 0

  function close(): void {
    if (used > 0) blocks.push(last.subarray(0, used))
    used = 0
  }

  return {
    get size() {
      return size
    },
    add(chunk) {
      size += chunk.byteLength
      let from = 0
      while (from < chunk.byteLength) {
        if (used === last.byteLength) {
          close()
          last = Buffer.allocUnsafeSlow(blockBytes)
        }
        const fits = Math.min(chunk.byteLength - from, last.byteLength - used)
        last.set(chunk.subarray(from, from + fits), used)
        used += fits
        from += fits
      }
    },
    drain() {
      close()
      const taken = blocks
      blocks = []
      last = Buffer.alloc(0)
      size = 0
      return taken
    },
  }
}
