import { GatewayError } from '../lib/gateway-error.ts'
import { createSemaphore } from '../lib/planes/semaphore.ts'
import { createLimiter, type Limiter } from '../lib/scheduling/limiter.ts'
import { isSource, overBudget, readAll } from '../net/http/body.ts'
import { type DecodeErrors, decode, isPlain } from '../net/http/content-encoding.ts'
import type { Headers } from '../net/http/headers.ts'
import type { CompileContext } from './compile-context.ts'
import type { Refusal } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { hasCoding } from './request-edits.ts'

export type RequestBodyLimits = {
  /** Limit on a body, before and after decoding. */
  readonly maxBodyBytes: number
  /** Limits concurrent decoding: a small body may expand before the budget counts it. */
  readonly decoding: Limiter
}

/** Request bodies of the process decoded concurrently: the number of Node's threads for it. */
const maxDecoding = 4

export function compileRequestBodyLimits(maxBodyBytes: number, context: CompileContext): RequestBodyLimits {
  return {
    maxBodyBytes,
    decoding: context.retained('request bodies/decoding', () => {
      const semaphore = createSemaphore(context.memory, 'request bodies/decoding')
      semaphore.resize(maxDecoding)
      return createLimiter(semaphore)
    }),
  }
}

/** The body of a request without content coding; `decoded` if it had one. */
export type RequestBody =
  | { kind: 'body'; bytes: Buffer; decoded: boolean }
  | { kind: 'refused'; refusal: Refusal }

const decodeErrors: DecodeErrors = {
  tooLarge: 'request_too_large',
  malformed: 'bad_request',
  unknown: 'unsupported_encoding',
}

/**
 * Reads and decodes the body of a request. `maxBodyBytes` limits it before and after decoding; both count
 * towards the body budget. Throws on an unsupported coding, an exhausted budget and an incomplete body.
 */
export async function readRequestBody(
  { body, facts, forwarding, cancellation }: Exchange,
  { maxBodyBytes: maxBytes, decoding }: RequestBodyLimits,
): Promise<RequestBody> {
  const encoding = hasCoding(forwarding) ? encodingOf(facts.request.headers) : undefined
  try {
    const bytes = await readAll(body, maxBytes, 'request_too_large')
    if (encoding === undefined || bytes.byteLength === 0) return { kind: 'body', bytes, decoded: false }
    const decoded = await decoding(async () => {
      if (cancellation.cancelled)
        throw new GatewayError('request_aborted', 'the client closed the connection')
      const plain = await decode(bytes, encoding, maxBytes, decodeErrors)
      if (isSource(body) && body.budget?.acquire(plain.byteLength) === false) throw overBudget()
      return plain
    })
    return { kind: 'body', bytes: decoded, decoded: true }
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'request_too_large') {
      const message = `request body is larger than ${maxBytes} bytes`
      return { kind: 'refused', refusal: { status: 413, code: 'request_body_too_large', message } }
    }
    if (error instanceof GatewayError && error.code === 'bad_request') {
      return {
        kind: 'refused',
        refusal: { status: 400, code: 'request_body_decode_failed', message: error.message },
      }
    }
    throw error
  }
}

/** All values of the header in one: a coding in a repeated header counts, too. */
function encodingOf(headers: Headers): string | undefined {
  const value = headers['content-encoding']
  const encoding = typeof value === 'object' ? value.join(', ') : value
  return isPlain(encoding) ? undefined : encoding
}
