import { type CelProgram, tryEvaluate } from '../../cel/cel.ts'
import { bodyOfResult, headerOfResult } from '../../cel/results.ts'
import { withSharedWorkBudget } from '../../cel/work-budget.ts'
import {
  applyHeaderEdits,
  type HeaderEdit,
  isEditableHeader,
  isHeaderValue,
  isPlainHeaderValue,
} from '../../net/http/header-edits.ts'
import type { Headers } from '../../net/http/headers.ts'
import {
  isUpgrade,
  markChangedBytes,
  replaceReplyBody,
  setReplyStatus,
} from '../../net/http-client/reply-edits.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { addMetadata } from '../../pipeline/facts/metadata.ts'
import {
  editRequestHeaders,
  forwardingOf,
  isRequestPseudoHeader,
  replaceRequestBody,
  setRequestPseudoHeader,
} from '../../pipeline/request-edits.ts'
import { isWithheldHeader } from '../../upstream/withheld-headers.ts'
import type { Changes, NamedProgram } from './changes.ts'

/** Result of changes: the number of expressions without a usable value. */
export type RequestChanges = {
  readonly failures: number
  /** The replacement of the headers or a pseudo-header has no usable value. */
  readonly isIncomplete: boolean
}

/**
 * Changes the forwarded request. All expressions share the work limit of one evaluation, which a client can
 * exhaust: an incomplete request must not be forwarded.
 */
export function editRequest(exchange: Exchange, changes: Changes): RequestChanges {
  return withSharedWorkBudget(() => changeRequest(exchange, changes))
}

/** Changes a reply in place. Returns the number of expressions without a usable value. */
export function editReply(exchange: Exchange, reply: Reply, changes: Changes): number {
  return withSharedWorkBudget(() => changeReply(exchange, reply, changes))
}

function changeRequest(exchange: Exchange, changes: Changes): RequestChanges {
  const { facts } = exchange
  let failures = writeMetadata(exchange, changes.metadata)
  let incomplete = 0
  if (changes.replace !== undefined) {
    const replaced = headersOf(changes.replace, facts, isReplaceable)
    if (replaced === undefined) incomplete += 1
    else
      forwardingOf(exchange).headerEdits.push((headers) => replaceHeaders(headers, replaced, isReplaceable))
  }
  const { edits, failed } = headerEdits(changes, facts)
  editRequestHeaders(exchange, edits)
  failures += failed
  for (const { name, program } of changes.pseudoHeaders) {
    const value = headerValue(program, facts)
    if (value === undefined || !isRequestPseudoHeader(name)) incomplete += 1
    else if (!setRequestPseudoHeader(exchange, name, value)) incomplete += 1
  }
  if (changes.body !== undefined && incomplete === 0) {
    const body = bodyOf(changes.body, facts, changes.maxBodyBytes)
    replaceRequestBody(exchange, body ?? empty)
    if (body === undefined) failures += 1
  }
  return { failures: failures + incomplete, isIncomplete: incomplete > 0 }
}

function changeReply(exchange: Exchange, reply: Reply, changes: Changes): number {
  const { facts } = exchange
  let failures = writeMetadata(exchange, changes.metadata)
  if (changes.replace !== undefined) {
    const replaced = headersOf(changes.replace, facts, isEditableHeader)
    if (replaced === undefined) failures += 1
    else replaceHeaders(reply.headers, replaced, isEditableHeader)
  }
  const { edits, failed } = headerEdits(changes, facts)
  // The body is evaluated before headers change: its expression may read them.
  const body = changes.body && bodyOf(changes.body, facts, changes.maxBodyBytes)
  if (changes.body !== undefined && body === undefined) failures += 1
  applyHeaderEdits(reply.headers, edits)
  failures += failed
  for (const { program } of changes.pseudoHeaders) {
    const result = tryEvaluate(program, facts)
    const status = result.kind === 'value' ? Number(result.value) : Number.NaN
    if (!setReplyStatus(reply, status)) failures += 1
  }
  if (changes.body !== undefined) replaceBody(exchange, reply, { body, changes })
  return failures
}

/** A stream whose body the expression would read is unchanged. */
function replaceBody(
  { facts }: Exchange,
  reply: Reply,
  { body, changes }: { body: Uint8Array | undefined; changes: Changes },
): void {
  if (isUpgrade(reply)) return
  if (facts.request.method === 'HEAD') {
    markChangedBytes(reply.headers)
    return
  }
  if (changes.changesResponseBody && facts.response?.body === undefined) return
  replaceReplyBody(reply, body ?? empty)
}

const empty = new Uint8Array(0)

function writeMetadata(exchange: Exchange, metadata: readonly NamedProgram[]): number {
  let failures = 0
  for (const { name, program } of metadata) {
    const result = tryEvaluate(program, exchange.facts)
    if (result.kind === 'value') addMetadata(exchange, { [name]: result.value })
    else failures += 1
  }
  return failures
}

/** A header whose expression fails is removed: it must not have a value of the client. */
function headerEdits({ headers, remove }: Changes, facts: object): { edits: HeaderEdit[]; failed: number } {
  const edits: HeaderEdit[] = []
  let failed = 0
  for (const { kind, name, program } of headers) {
    const value = headerValue(program, facts)
    if (value !== undefined) edits.push({ kind, name, value })
    else {
      failed += 1
      edits.push({ kind: 'remove', name })
    }
  }
  for (const name of remove) edits.push({ kind: 'remove', name })
  return { edits, failed }
}

function headerValue(program: CelProgram, facts: object): string | undefined {
  const result = tryEvaluate(program, facts)
  if (result.kind === 'failed') return undefined
  const { value } = result
  if (typeof value === 'string' && isPlainHeaderValue(value)) return value
  const text = headerOfResult(value)
  return text !== undefined && isHeaderValue(text) ? text : undefined
}

/** The value of an expression as a body; undefined if it fails or is too large. */
function bodyOf(program: CelProgram, facts: object, maxBytes: number): Uint8Array | undefined {
  const result = tryEvaluate(program, facts, bytesOf)
  const bytes = result.kind === 'value' && result.value instanceof Uint8Array ? result.value : undefined
  return bytes === undefined || bytes.byteLength > maxBytes ? undefined : bytes
}

function bytesOf(value: unknown): Uint8Array | undefined {
  return value === undefined ? undefined : bodyOfResult(value)
}

type IsReplaceable = (name: string) => boolean

/**
 * Whether a replacement applies to a header of requests. It may be a copy of the client's headers: those that
 * backends must not receive stay withheld, and those of the MCP transport belong to the gateway.
 */
function isReplaceable(name: string): boolean {
  return isEditableHeader(name) && !isWithheldHeader(name) && !name.startsWith('mcp-')
}

/** The value of an expression as header fields; undefined if it fails or is not a map. */
function headersOf(
  program: CelProgram,
  facts: object,
  isIncluded: IsReplaceable,
): ReadonlyMap<string, string | string[]> | undefined {
  const result = tryEvaluate(program, facts)
  if (result.kind === 'failed' || !isMap(result.value)) return undefined
  const headers = new Map<string, string | string[]>()
  for (const [key, value] of Object.entries(result.value)) {
    const name = key.toLowerCase()
    if (!isIncluded(name)) continue
    const texts = (Array.isArray(value) ? value : [value]).flatMap((one) => {
      const text = headerOfResult(one)
      return text !== undefined && isHeaderValue(text) ? [text] : []
    })
    const [only] = texts
    if (only !== undefined) headers.set(name, texts.length === 1 ? only : texts)
  }
  return headers
}

function isMap(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  )
}

/** Replaces all fields that may be replaced. */
function replaceHeaders(
  headers: Headers,
  replaced: ReadonlyMap<string, string | string[]>,
  isIncluded: IsReplaceable,
): void {
  for (const name of Object.keys(headers)) if (isIncluded(name)) delete headers[name]
  for (const [name, value] of replaced) headers[name] = value
}
