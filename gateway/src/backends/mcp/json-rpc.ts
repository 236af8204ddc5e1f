import { isJsonObject, type JsonObject } from '../../lib/json.ts'
import { type JsonText, memberText, readJsonObject } from '../../lib/json-text.ts'
import type { Message } from './targets/target.ts'

/** A message of a client that may go on. `idText` is the id exactly as written, for answers the gateway gives itself. */
export type ClientMessage =
  | { kind: 'request'; json: JsonText; method: string; id: string | number; idText: string }
  | { kind: 'notification'; json: JsonText; method: string }
  | { kind: 'response'; json: JsonText; id: string | number | null }

/** Why a body is no single JSON-RPC message, in JSON-RPC's own codes. */
export type Malformed = { kind: 'malformed'; code: number; message: string; idText: string }

const parseError = -32700
export const invalidRequest = -32600
export const methodNotFound = -32601
export const invalidParams = -32602
export const internalError = -32603
/** Codes of the official servers: a request that does not fit its session, and a session that is over. */
export const badRequest = -32000
export const sessionNotFound = -32001
/** Codes of revision 2026-07-28. */
export const headerMismatch = -32020
export const unsupportedVersion = -32022

/**
 * Reads the body of a POST: exactly one message (JSON-RPC 2.0 section 4 and 5; batches went with MCP 2025-06-18).
 * Names that differ from the protocol's only by case are refused, because readers that ignore case would see another
 * message than the rules saw.
 */
export function readClientMessage(text: string): ClientMessage | Malformed {
  const json = readJsonObject(text)
  if (json.kind === 'duplicate') return malformed(invalidRequest, `"${json.path}" occurs twice`)
  if (json.kind === 'invalid') {
    if (/^\s*\[/.test(text)) return malformed(invalidRequest, 'batches are not supported: send one message')
    return malformed(parseError, `the body is ${json.message}`)
  }
  const { value } = json
  const id = value['id']
  const validId = typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id))
  const idText = validId ? textOfId(id, json) : 'null'
  const disguised = disguisedName(value, envelopeNames) ?? disguisedParameter(value)
  if (disguised !== undefined) return malformed(invalidRequest, `"${disguised}" is misspelt`, idText)
  if (value['jsonrpc'] !== '2.0') return malformed(invalidRequest, 'jsonrpc must be "2.0"', idText)
  const { method, params } = value
  if (params !== undefined && (typeof params !== 'object' || params === null)) {
    return malformed(invalidRequest, 'params must be an object', idText)
  }
  const answers = ('result' in value ? 1 : 0) + ('error' in value ? 1 : 0)
  if (method !== undefined) {
    if (typeof method !== 'string') return malformed(invalidRequest, 'method must be a string', idText)
    if (answers > 0) return malformed(invalidRequest, 'a message has a method or a result', idText)
    if (!('id' in value)) return { kind: 'notification', json, method }
    if (!validId) return malformed(invalidRequest, 'id must be a string or a number')
    return { kind: 'request', json, method, id, idText }
  }
  if (answers !== 1) return malformed(invalidRequest, 'neither a request nor a response', idText)
  if (!validId && id !== null) return malformed(invalidRequest, 'a response needs the id it answers')
  return { kind: 'response', json, id }
}

/** The id as JSON. Only a number too long to be read exactly has to be looked for in the text. */
function textOfId(id: string | number, json: JsonText): string {
  if (typeof id === 'string' || Number.isSafeInteger(id)) return JSON.stringify(id)
  return memberText(json, 'id') ?? 'null'
}

/** A JSON-RPC error as text. `idText` is JSON. */
export function errorText(idText: string, code: number, message: string, data?: object): string {
  const error = JSON.stringify(data === undefined ? { code, message } : { code, message, data })
  return `{"jsonrpc":"2.0","id":${idText},"error":${error}}`
}

/** A message made here, from its value. */
export function messageOf(value: JsonObject): Message {
  return { text: JSON.stringify(value), value }
}

/** True for the message that answers the request with this id. */
export function isResponseTo({ value }: Message, id: string | number): boolean {
  return value['id'] === id && value['method'] === undefined
}

/** The `params` of a message, empty where it has none. */
export function paramsOf(value: JsonObject): JsonObject {
  const { params } = value
  return isJsonObject(params) ? params : {}
}

const envelopeNames: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
/** Parameters that say what a call is about. */
const subjectNames: ReadonlySet<string> = new Set([
  'name',
  'uri',
  'arguments',
  'ref',
  'type',
  'taskId',
  '_meta',
])
const subjectMethods = /^(?:tools|prompts|resources|completion|tasks)\//

function disguisedParameter({ method, params }: JsonObject): string | undefined {
  if (typeof method !== 'string' || !isJsonObject(params) || !subjectMethods.test(method)) return undefined
  const { ref } = params
  return (
    disguisedName(params, subjectNames) ?? (isJsonObject(ref) ? disguisedName(ref, subjectNames) : undefined)
  )
}

function disguisedName(object: JsonObject, names: ReadonlySet<string>): string | undefined {
  for (const key in object) {
    if (!names.has(key) && names.has(foldCase(key))) return key
  }
  return undefined
}

const folded: ReadonlyMap<string, string> = new Map([['taskid', 'taskId']])

/** Both ways, because some letters meet an ASCII one only in upper case (long s) or only in lower case (Kelvin sign). */
function foldCase(key: string): string {
  const lower = key.toUpperCase().toLowerCase()
  return folded.get(lower) ?? lower
}

function malformed(code: number, message: string, idText = 'null'): Malformed {
  return { kind: 'malformed', code, message, idText }
}
