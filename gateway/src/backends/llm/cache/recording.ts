import { isJsonObject } from '../../../lib/json/json.ts'
import { answerLimits } from '../../../lib/json/limits.ts'
import { readJson } from '../../../lib/json/read.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import { type BodySource, withTransform } from '../../../net/http/body.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Call } from '../request/call.ts'
import type { ResponseCache } from './cache.ts'

/** The response that is recorded. */
type Recorded = {
  readonly exchange: Pick<Exchange, 'log'>
  readonly call: Pick<Call, 'endpoint'>
  readonly cache: Pick<ResponseCache, 'store' | 'maxEntryBytes'>
}

type SaveOptions = {
  /** Receives bytes that nothing else refers to. */
  save(bytes: Buffer): void
  readonly workQueue: WorkQueue
}

/** Saves a JSON response unless it is large, or reports a failure in spite of its status. */
export async function storeObject(
  body: Uint8Array,
  { call, cache }: Recorded,
  { save, workQueue }: SaveOptions,
): Promise<void> {
  if (body.byteLength > cache.maxEntryBytes) return
  const bytes = copyOf([body], body.byteLength)
  const reading = readJson(bytes, workQueue, answerLimits)
  const read = reading instanceof Promise ? await reading : reading
  if (read.kind !== 'object') return
  const { error, status, finish_reason: end } = read.value
  if (isJsonObject(error) || typeof error === 'string') return
  if (call.endpoint === 'responses' && status !== 'completed' && status !== 'incomplete') return
  if (call.endpoint === 'cohere_chat' && (end === 'ERROR' || end === 'TIMEOUT')) return
  save(bytes)
}

/**
 * Responses that failed have a complete stream. The text cannot occur in JSON without escapes of its quotes.
 */
const failedResponse = /^(?:event: ?response\.failed|data: ?\{"type": ?"response\.failed")/m

/**
 * The stream, which is recorded on its way and saved after its end. Streams that fail, are cancelled or too
 * long are not saved.
 */
export function recordingStream(
  source: BodySource,
  { exchange, call, cache }: Recorded,
  save: (bytes: Buffer) => void,
): BodySource {
  const { store, maxEntryBytes } = cache
  let chunks: Uint8Array[] | undefined = []
  let size = 0

  function drop(): void {
    if (chunks === undefined) return
    chunks = undefined
    store.release(size)
  }

  function record(chunk: Uint8Array): void {
    if (chunks === undefined) return
    const next = size + chunk.byteLength
    if (next > maxEntryBytes || !store.reserve(chunk.byteLength)) {
      drop()
      return
    }
    size = next
    // The memory of a chunk may be reused by the connection.
    chunks.push(Buffer.from(chunk))
  }

  function finish(): void {
    const recorded = chunks
    drop()
    if (recorded === undefined || size === 0 || exchange.log.failure !== undefined) return
    const bytes = copyOf(recorded, size)
    if (call.endpoint === 'responses' && failedResponse.test(bytes.toString('latin1'))) return
    save(bytes)
  }

  const recording = withTransform(source, (sink) => ({
    write(chunk) {
      record(chunk)
      return sink.write(chunk)
    },
    end(trailers) {
      finish()
      sink.end(trailers)
    },
    fail(error) {
      drop()
      sink.fail(error)
    },
  }))
  return {
    ...recording,
    cancel() {
      drop()
      recording.cancel()
    },
  }
}

/** A copy with memory of its own: parts of larger memory would retain all of it. */
function copyOf(chunks: readonly Uint8Array[], size: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const chunk of chunks) {
    copy.set(chunk, at)
    at += chunk.byteLength
  }
  return copy
}
