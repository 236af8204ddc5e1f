import type { Memory } from '../../lib/planes/memory.ts'

/** Latest fetches of a document. Times are milliseconds of `Clock.monotonic()`. */
export type DocumentState = {
  /** Text of the latest successful fetch. */
  readonly text: string | undefined
  /** Changes with the text. */
  readonly version: number
  /** End of the freshness of the text. */
  readonly dueAt: number
  /** Failed fetches since the latest success. */
  readonly failures: number
  /** End of the pause after a failure. */
  readonly retryAt: number
  /** Changes with each fetch. */
  readonly generation: number
}

/** Result of a fetch: a text and the end of its freshness, or the end of the pause after a failure. */
export type DocumentFetch =
  | { kind: 'fetched'; text: string; dueAt: number }
  | { kind: 'failed'; retryAt: number }

export type DocumentUpdate = {
  /** State that requires a fetch. */
  since: DocumentState
  /** Whether a fetch is permitted; not called if a fetch is in progress. */
  isPermitted?(): boolean
  /** Must not reject. */
  fetch(): Promise<DocumentFetch>
}

/** Document of a remote server, fetched once for all data planes of the process. */
export type SharedDocument = {
  /** State of the document; the same object until a fetch of any data plane ends. */
  latest(): DocumentState
  /**
   * Fetches the document, unless a fetch of any data plane has ended after `since`. Waits for a fetch that is
   * in progress instead.
   */
  update(update: DocumentUpdate): Promise<void>
}

/** Cells of the region: the lock (`lib/planes/lock.ts`) of the data plane that fetches, and the state. */
const cells = { owner: 0, generation: 4, version: 5, length: 6, failures: 7 }
const times = { dueAt: 4, retryAt: 5 }
const textOffset = 48
const firstTextBytes = 8 * 1024 - textOffset
/** Interval of checks whether the data plane that fetches has ended. */
const checkMs = 1_000

const initial: DocumentState = {
  text: undefined,
  version: 0,
  dueAt: Number.NEGATIVE_INFINITY,
  failures: 0,
  retryAt: Number.NEGATIVE_INFINITY,
  generation: 0,
}

/**
 * Creates the document of a name with at most `maxBytes` of text. Its state is in shared memory: whichever
 * data plane first requires a fetch performs it, and all of them read the result. If it ends before, another
 * one fetches.
 */
export function createSharedDocument(name: string, maxBytes: number, memory: Memory): SharedDocument {
  const region = memory.region(
    `identity document: ${name}`,
    textOffset + firstTextBytes,
    textOffset + Math.max(firstTextBytes, Math.ceil(maxBytes / 8) * 8),
  )
  const self = memory.plane + 1
  let state = initial
  let running: Promise<void> | undefined

  function latest(): DocumentState {
    if (Atomics.load(region.int32, cells.generation) !== state.generation) state = read() ?? state
    return state
  }

  /** Reads a consistent state; undefined while another data plane writes, which makes the generation odd. */
  function read(): DocumentState | undefined {
    const { int32, float64, uint8 } = region
    const generation = Atomics.load(int32, cells.generation)
    if (generation % 2 !== 0) return undefined
    const version = cell(int32, cells.version)
    const text =
      version === state.version
        ? state.text
        : Buffer.from(uint8.subarray(textOffset, textOffset + cell(int32, cells.length))).toString('utf8')
    const found = {
      ...{ text, version, generation },
      dueAt: version === 0 ? initial.dueAt : cell(float64, times.dueAt),
      failures: cell(int32, cells.failures),
      retryAt: cell(float64, times.retryAt),
    }
    return Atomics.load(int32, cells.generation) === generation ? found : undefined
  }

  function write(result: DocumentFetch): void {
    const before = latest()
    const text = result.kind === 'fetched' ? result.text : before.text
    // Odd if a data plane ended while it wrote: the text may be incomplete.
    const isBroken = Atomics.load(region.int32, cells.generation) % 2 !== 0
    const bytes = isBroken || text !== before.text ? Buffer.from(text ?? '') : undefined
    const size = textOffset + Math.ceil((bytes?.byteLength ?? 0) / 8) * 8
    if (size > region.uint8.byteLength) region.grow(size)
    const { int32, float64, uint8 } = region
    const generation = Atomics.load(int32, cells.generation) | 1
    Atomics.store(int32, cells.generation, generation)
    if (result.kind === 'failed') {
      int32[cells.failures] = cell(int32, cells.failures) + 1
      float64[times.retryAt] = result.retryAt
    } else {
      int32[cells.failures] = 0
      float64[times.dueAt] = result.dueAt
    }
    if (bytes !== undefined) {
      uint8.set(bytes, textOffset)
      int32[cells.length] = bytes.byteLength
      int32[cells.version] = cell(int32, cells.version) + 1
    }
    Atomics.store(int32, cells.generation, generation + 1)
  }

  /** Becomes the data plane that fetches, or returns the other one. A predecessor of this one has ended. */
  function acquire(): number | undefined {
    const owner = Atomics.compareExchange(region.int32, cells.owner, 0, self)
    return owner === 0 || owner === self ? undefined : owner
  }

  function release(): void {
    Atomics.compareExchange(region.int32, cells.owner, self, 0)
    Atomics.notify(region.int32, cells.owner)
  }

  async function run(fetch: DocumentUpdate['fetch']): Promise<void> {
    try {
      write(await fetch())
    } finally {
      release()
      running = undefined
    }
  }

  return {
    latest,
    async update({ since, isPermitted, fetch }) {
      while (latest().generation === since.generation) {
        const owner = running === undefined ? acquire() : undefined
        if (owner !== undefined) {
          await Atomics.waitAsync(region.int32, cells.owner, owner, checkMs).value
          continue
        }
        if (running === undefined) {
          // Another data plane may have fetched just before.
          if (latest().generation !== since.generation || isPermitted?.() === false) return release()
          running = run(fetch)
        }
        await running
      }
    },
  }
}

function cell(values: Int32Array | Float64Array, index: number): number {
  return values[index] ?? 0
}
