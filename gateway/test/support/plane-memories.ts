import { type Memory, maxBytesOf, regionOf } from '../../src/lib/planes/memory.ts'

/** Memory of several data planes on this thread. */
export function createPlaneMemories(count: number): Memory[] {
  const buffers = new Map<string, SharedArrayBuffer>()
  return Array.from({ length: count }, (_, plane) => ({
    plane,
    planes: count,
    region(name, bytes, maxBytes) {
      const buffer = buffers.get(name) ?? new SharedArrayBuffer(bytes, maxBytesOf(bytes, maxBytes))
      buffers.set(name, buffer)
      return regionOf(buffer)
    },
  }))
}
