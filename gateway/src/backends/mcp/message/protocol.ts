import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import { type ClientMessage, paramsOf } from './json-rpc.ts'

/** Revisions with sessions, the newest first. */
export const revisions: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
const known: ReadonlySet<string> = new Set(revisions)

/** Revisions without sessions. */
export const sessionlessRevisions: readonly string[] = ['2026-07-28']
const sessionless: ReadonlySet<string> = new Set(sessionlessRevisions)

/** Whether a request is of a revision without sessions. */
export function isSessionless({ protocolVersion }: { readonly protocolVersion?: string }): boolean {
  return protocolVersion !== undefined && sessionless.has(protocolVersion)
}

/** Protocol revision of a request; `session` by default. */
export type Revision = { kind: 'session' | 'sessionless' | 'unknown'; version: string | undefined }

/** Reads the revision from the header, or from the message for revisions that repeat it there. */
export function revisionOf(headers: Headers, message: JsonObject | undefined): Revision {
  const header = firstHeader(headers, 'mcp-protocol-version')
  const version = header ?? (message && versionInMeta(message))
  if (version === undefined) return { kind: 'session', version }
  if (sessionless.has(version)) return { kind: 'sessionless', version }
  return { kind: known.has(version) ? 'session' : 'unknown', version }
}

/**
 * Describes a header of a sessionless request that differs from the body; rules and targets could interpret
 * the request differently.
 */
export function headerMismatchOf(headers: Headers, message: ClientMessage): string | undefined {
  if (firstHeader(headers, 'mcp-session-id') !== undefined) return 'this revision has no sessions'
  const { value } = message.json
  const inside = versionInMeta(value)
  const version = firstHeader(headers, 'mcp-protocol-version')
  if (message.kind === 'request' && version !== inside) {
    return 'mcp-protocol-version differs from the protocol version in _meta'
  }
  if (message.kind === 'response') return undefined
  const method = firstHeader(headers, 'mcp-method')
  // The revision defines no headers of notifications.
  const isMissing = method === undefined && message.kind === 'notification'
  if (!isMissing && method !== message.method) return 'mcp-method differs from the method'
  const naming = nameParameters.get(message.method)
  if (naming === undefined) return undefined
  const name = paramsOf(value)[naming]
  const header = firstHeader(headers, 'mcp-name')
  if (header === undefined || decodeHeader(header) !== name) return `mcp-name differs from params.${naming}`
  return undefined
}

/** Whether the client accepts both JSON and event streams as POST responses. */
export function acceptsPost(accept: string | undefined): boolean {
  if (accept === undefined) return false
  if (accept === 'application/json, text/event-stream') return true
  const types = mediaTypes(accept)
  const any = types.has('*/*')
  return (
    (any || types.has('application/json') || types.has('application/*')) &&
    (any || types.has('text/event-stream') || types.has('text/*'))
  )
}

export function acceptsEventStream(accept: string | undefined): boolean {
  if (accept === undefined) return false
  const types = mediaTypes(accept)
  return types.has('text/event-stream') || types.has('text/*') || types.has('*/*')
}

/** Parameter that `mcp-name` repeats, by method. */
const nameParameters: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/** Revision in `_meta` of a message, as sent by sessionless revisions. */
export function versionInMeta(message: JsonObject): string | undefined {
  const { _meta: meta } = paramsOf(message)
  const version = isJsonObject(meta) ? meta['io.modelcontextprotocol/protocolVersion'] : undefined
  return typeof version === 'string' ? version : undefined
}

function mediaTypes(accept: string): Set<string> {
  return new Set(accept.split(',').map((range) => (range.split(';')[0] ?? '').trim().toLowerCase()))
}

/** Decodes values beyond plain header text, sent as `=?base64?…?=`; the markers are case-sensitive. */
export function decodeHeader(value: string): string {
  const encoded = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(value)
  return encoded ? Buffer.from(encoded[1] ?? '', 'base64').toString() : value
}

/** Encodes text beyond plain header text. */
export function encodeHeader(value: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith('=?')
  return isPlain ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`
}
