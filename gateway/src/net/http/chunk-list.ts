/**
 * A chunk retains the buffer it was cut from, so small chunks are copied together: a body may arrive byte by
 * byte.
 */
const smallChunkBytes = 1024
const blockBytes = 16 * 1024
const nothing = Buffer.alloc(0)

/** Chunks of a body in memory. */
export type ChunkList = {
  add(chunk: Uint8Array): void
  /** The chunks, of which small ones are joined. No chunk may be added later. */
  close(): Uint8Array[]
}

export function createChunkList(): ChunkList {
  const chunks: Uint8Array[] = []
  let block = nothing
  let blockSize = 0

  function closeBlock() {
    if (blockSize > 0) chunks.push(block.subarray(0, blockSize))
    block = nothing
    blockSize = 0
  }

  function copy(chunk: Uint8Array) {
    if (blockSize + chunk.byteLength > block.byteLength) {
      closeBlock()
      block = Buffer.allocUnsafe(blockBytes)
    }
    block.set(chunk, blockSize)
    blockSize += chunk.byteLength
  }

  return {
    add(chunk) {
      if (chunks.length > 0 && chunk.byteLength < smallChunkBytes) copy(chunk)
      else {
        closeBlock()
        chunks.push(chunk)
      }
    },
    close() {
      closeBlock()
      return chunks
    },
  }
}
