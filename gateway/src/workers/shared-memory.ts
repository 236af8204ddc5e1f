import { type BindableMemory, maxBytesOf, type Region, regionOf } from '../lib/planes/memory.ts'

/** A region that a data plane requests. */
export type RegionRequest = { name: string; bytes: number; maxBytes: number | undefined }

export type NamedBuffer = { readonly name: string; readonly buffer: SharedArrayBuffer }

/** All regions of the process, on the main thread. */
export type MemoryDirectory = {
  /** Buffers of the requested regions, in order; the data plane references each of them once more. */
  acquire(plane: number, requests: readonly RegionRequest[]): SharedArrayBuffer[]
  /** Ends references of a data plane. */
  release(plane: number, names: readonly string[]): void
  /** Ends all references of a data plane that has ended. Returns the regions that others still reference. */
  releaseAll(plane: number): NamedBuffer[]
  readonly size: number
}

export function createMemoryDirectory(): MemoryDirectory {
  const regions = new Map<string, { buffer: SharedArrayBuffer; references: Map<number, number> }>()

  function entryOf({ name, bytes, maxBytes }: RegionRequest) {
    const known = regions.get(name)
    if (known !== undefined) return known
    const buffer = new SharedArrayBuffer(bytes, maxBytesOf(bytes, maxBytes))
    const region = { buffer, references: new Map<number, number>() }
    regions.set(name, region)
    return region
  }

  /** All requested regions, or none if the memory does not suffice. */
  function entriesOf(requests: readonly RegionRequest[]) {
    try {
      return requests.map(entryOf)
    } catch (error) {
      for (const [name, { references }] of regions) if (references.size === 0) regions.delete(name)
      throw error
    }
  }

  function remove(name: string, plane: number, count: number): void {
    const region = regions.get(name)
    if (region === undefined) return
    const left = (region.references.get(plane) ?? 0) - count
    if (left > 0) region.references.set(plane, left)
    else region.references.delete(plane)
    if (region.references.size === 0) regions.delete(name)
  }

  return {
    acquire(plane, requests) {
      const acquired = entriesOf(requests)
      for (const { references } of acquired) references.set(plane, (references.get(plane) ?? 0) + 1)
      return acquired.map(({ buffer }) => buffer)
    },
    release(plane, names) {
      for (const name of names) remove(name, plane, 1)
    },
    releaseAll(plane) {
      for (const name of [...regions.keys()]) remove(name, plane, Number.POSITIVE_INFINITY)
      return [...regions].map(([name, { buffer }]) => ({ name, buffer }))
    },
    get size() {
      return regions.size
    },
  }
}

export type SharedMemoryOptions = {
  plane: number
  planes: number
  /** Requests regions from the directory. */
  acquire(requests: readonly RegionRequest[]): Promise<readonly SharedArrayBuffer[]>
  release(name: string): void
}

/**
 * Memory of a data plane on a thread. Regions are bound together, with one message: those of a compilation by
 * `bind`, others soon after their request.
 */
export function createSharedMemory({ plane, planes, acquire, release }: SharedMemoryOptions): BindableMemory {
  const known = new Map<string, WeakRef<Region>>()
  const collected = new FinalizationRegistry<string>((name) => {
    if (known.get(name)?.deref() === undefined) known.delete(name)
    release(name)
  })
  let unbound: { request: RegionRequest; region: Region }[] = []
  let bound: Promise<void> = Promise.resolve()

  /** Binds after the bindings in progress. */
  function bind(): Promise<void> {
    const binding = bound.then(bindRequested)
    bound = binding.catch(() => undefined)
    return binding
  }

  async function bindRequested(): Promise<void> {
    if (unbound.length === 0) return
    const requested = unbound
    unbound = []
    try {
      const buffers = await acquire(requested.map(({ request }) => request))
      requested.forEach(({ region }, index) => {
        const buffer = buffers[index]
        if (buffer !== undefined) Object.assign(region, regionOf(buffer))
      })
    } catch (error) {
      // Users of these regions may be retained: the next attempt includes them.
      unbound = [...requested, ...unbound]
      throw error
    }
  }

  return {
    plane,
    planes,
    region(name, bytes, maxBytes) {
      const existing = known.get(name)?.deref()
      if (existing !== undefined) return existing
      const region = { ...unboundRegion }
      known.set(name, new WeakRef(region))
      collected.register(region, name)
      unbound.push({ request: { name, bytes, maxBytes }, region })
      // The next compilation reports a failure.
      if (unbound.length === 1) setImmediate(() => bind().catch(() => undefined))
      return region
    },
    bind,
  }
}

/** A region until it is bound. */
const unboundRegion: Region = {
  int32: new Int32Array(0),
  float64: new Float64Array(0),
  uint8: new Uint8Array(0),
  grow() {},
}
