import type { GatewayError } from '../../../lib/gateway-error.ts'
import { type BodySource, isSource, overBudget } from '../../../net/http/body.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { createUpstreamBody } from '../../../net/http-client/upstream-body.ts'
import { sourceOf } from './body-source.ts'

export type Collected =
  | { readonly kind: 'complete'; readonly bytes: Uint8Array; readonly trailers: Headers | undefined }
  /** The body is larger than the limit. */
  | {
      readonly kind: 'larger'
      readonly bytes: Uint8Array
      /** The body with other bytes in place of those read. */
      withPrefix(bytes: Uint8Array): BodySource
    }

/** Reads a body up to a limit. Rejects if the body fails, or without memory for it. */
export async function collectBody(body: Uint8Array | BodySource, maxBytes: number): Promise<Collected> {
  if (isSource(body)) return collect(body, maxBytes)
  if (body.byteLength <= maxBytes) return { kind: 'complete', bytes: body, trailers: undefined }
  const withPrefix = (prefix: Uint8Array) => sourceOf(Buffer.concat([prefix, body.subarray(maxBytes)]))
  return { kind: 'larger', bytes: body.subarray(0, maxBytes), withPrefix }
}

function collect(source: BodySource, maxBytes: number): Promise<Collected> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let size = 0
    let phase: 'collecting' | 'paused' | 'flowing' | 'failed' = 'collecting'
    const rest = createUpstreamBody({ pause() {}, resume: () => source.resume(), abort() {} }, () =>
      source.cancel(),
    )

    function add(chunk: Uint8Array): boolean {
      chunks.push(chunk)
      size += chunk.byteLength
      if (source.budget?.acquire(chunk.byteLength) === false) {
        fail(overBudget())
        source.cancel()
        return true
      }
      if (size <= maxBytes) return true
      phase = 'paused'
      resolve({ kind: 'larger', bytes: Buffer.concat(chunks.splice(0), size), withPrefix })
      return false
    }

    /** Chunks that arrive while the source pauses are few. */
    function withPrefix(bytes: Uint8Array): BodySource {
      phase = 'flowing'
      if (bytes.byteLength > 0) rest.write(bytes)
      for (const chunk of chunks.splice(0)) rest.write(chunk)
      return rest
    }

    function fail(error: Error | GatewayError): void {
      const wasCollecting = phase === 'collecting'
      phase = wasCollecting ? 'failed' : phase
      if (wasCollecting) reject(error)
      else rest.fail(error)
    }

    source.start({
      write(chunk) {
        if (phase === 'collecting') return add(chunk)
        if (phase === 'flowing') return rest.write(chunk)
        if (phase === 'paused') chunks.push(chunk)
        return phase === 'failed'
      },
      end(trailers) {
        if (phase === 'collecting') resolve({ kind: 'complete', bytes: joined(chunks, size), trailers })
        else if (phase !== 'failed') rest.end(trailers)
      },
      fail,
    })
  })
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size)
}
