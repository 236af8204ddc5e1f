/**
 * Zero-initialised memory by name, the same for all data planes of the process. The views are empty until
 * the memory is bound: after the compilation that requested it, before its configuration serves traffic. The
 * views are replaced then, so they are read through the region on each use.
 */
export type Region = {
  readonly int32: Int32Array
  readonly float64: Float64Array
  readonly uint8: Uint8Array
  /** Enlarges the memory up to its maximum; all data planes see it. The views change their length. */
  grow(bytes: number): void
}

export type Memory = {
  /** Index of this data plane, from 0. A replacement of a failed data plane has the same index. */
  readonly plane: number
  /** Number of data planes: regions with a part per data plane have so many parts. */
  readonly planes: number
  /**
   * The region of a name. `bytes` is a multiple of 8; names have one size. Memory is released when no data
   * plane references the region.
   */
  region(name: string, bytes: number, maxBytes?: number): Region
}

/** Memory with control over the time of binding. */
export type BindableMemory = Memory & {
  /** Binds the regions requested so far. Resolves when their views can be used. */
  bind(): Promise<void>
}

/** Memory of a process with a single data plane. The caller retains regions by name. */
export function createLocalMemory(): BindableMemory {
  return {
    plane: 0,
    planes: 1,
    region: (_name, bytes, maxBytes) => regionOf(new ArrayBuffer(bytes, maxBytesOf(bytes, maxBytes))),
    bind: () => Promise.resolve(),
  }
}

/** A bound region. */
export function regionOf(buffer: ArrayBuffer | SharedArrayBuffer): Region {
  return {
    int32: new Int32Array(buffer),
    float64: new Float64Array(buffer),
    uint8: new Uint8Array(buffer),
    grow(bytes) {
      if (buffer instanceof ArrayBuffer) buffer.resize(bytes)
      // Another data plane may have enlarged it further in the meantime.
      else if (bytes > buffer.byteLength) buffer.grow(bytes)
    },
  }
}

/** Options of a buffer; fixed-length buffers have faster views. */
export function maxBytesOf(
  bytes: number,
  maxBytes: number | undefined,
): { maxByteLength: number } | undefined {
  return maxBytes === undefined || maxBytes <= bytes ? undefined : { maxByteLength: maxBytes }
}
