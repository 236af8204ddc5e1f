import type { Headers } from '../../net/http/headers.ts'

/** Position in a trace: W3C Trace Context. Ids are lower-case hexadecimal. */
export type TraceContext = {
  readonly traceId: string
  readonly spanId: string
  /** The caller records its spans. */
  readonly isSampled: boolean
  /** Value of `tracestate`; undefined without a valid one. */
  readonly traceState: string | undefined
}

const traceparentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/
const noTrace = '0'.repeat(32)
const noSpan = '0'.repeat(16)
/** Limits of section 3.3 of the recommendation. */
const maxStateLength = 512
const maxStateMembers = 32
/** Version 00 has exactly this length. */
const versionZeroLength = 55

/**
 * Reads `traceparent` and `tracestate` (W3C Trace Context level 2, sections 3.2 and 3.3). Undefined without
 * a valid `traceparent`.
 */
export function readTraceContext(headers: Headers): TraceContext | undefined {
  const header = headers['traceparent']
  return typeof header === 'string' ? parseTraceparent(header, stateOf(headers['tracestate'])) : undefined
}

/** Parses a `traceparent` with the value of `tracestate`. */
export function parseTraceparent(text: string, traceState: string | undefined): TraceContext | undefined {
  const match = traceparentPattern.exec(text)
  if (match === null) return undefined
  const [, version = '', traceId = '', spanId = '', flags = ''] = match
  if (version === 'ff' || traceId === noTrace || spanId === noSpan) return undefined
  if (version === '00' && text.length !== versionZeroLength) return undefined
  return {
    traceId,
    spanId,
    isSampled: (Number.parseInt(flags, 16) & 1) === 1,
    traceState: traceState !== undefined && isTraceState(traceState) ? traceState : undefined,
  }
}

/** Value of `traceparent` for a call. */
function formatTraceparent(traceId: string, spanId: string, isSampled: boolean): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** Sets the headers of a call that continues a trace. */
export function writeTraceContext(
  headers: Headers,
  { traceId, spanId, isSampled, traceState }: TraceContext,
): void {
  headers['traceparent'] = formatTraceparent(traceId, spanId, isSampled)
  if (traceState === undefined) delete headers['tracestate']
  else headers['tracestate'] = traceState
}

function stateOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  return typeof header === 'string' ? header : header.join(',')
}

/** Whether a text is safe to forward: printable members within the limits. */
function isTraceState(text: string): boolean {
  if (text === '' || text.length > maxStateLength) return false
  if (!/^[\x20-\x7e\t]*$/.test(text)) return false
  const members = text.split(',').filter((member) => member.trim() !== '')
  return members.length <= maxStateMembers && members.every((member) => member.includes('='))
}

/** Generator of trace and span ids. */
export type TraceIds = { traceId(): string; spanId(): string }

const poolBytes = 4096

/** Creates ids from random bytes, which are requested for many ids at once. */
export function createTraceIds(fill: (bytes: Uint8Array) => void): TraceIds {
  const pool = Buffer.alloc(poolBytes)
  let used = poolBytes

  function next(bytes: number, none: string): string {
    for (;;) {
      if (used + bytes > poolBytes) {
        fill(pool)
        used = 0
      }
      const id = pool.toString('hex', used, used + bytes)
      used += bytes
      if (id !== none) return id
    }
  }

  return { traceId: () => next(16, noTrace), spanId: () => next(8, noSpan) }
}
