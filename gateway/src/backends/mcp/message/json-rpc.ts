import { memberText } from '../../../lib/json/edit.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonLimits } from '../../../lib/json/limits.ts'
import type { NameProblem } from '../../../lib/json/names.ts'
import { isLarge, type ReadJson, readJson } from '../../../lib/json/read.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import { itemTexts } from './json-edit.ts'
import { findAmbiguousMcpName } from './member-names.ts'
import type { Message } from './message.ts'

/** A valid message of a client. `idText` is the id exactly as written, for responses of the gateway. */
export type ClientMessage =
  | { kind: 'request'; json: JsonText; method: string; id: string | number; idText: string }
  | { kind: 'notification'; json: JsonText; method: string }
  | { kind: 'response'; json: JsonText; id: string | number | null }

/** A JSON-RPC batch: at least one message. */
export type ClientBatch = { kind: 'batch'; messages: ClientMessage[] }

/** JSON-RPC error for an invalid body. */
export type Malformed = { kind: 'malformed'; code: number; message: string; idText: string }

const parseError = -32700
export const invalidRequest = -32600
export const methodNotFound = -32601
export const invalidParams = -32602
export const internalError = -32603
/** Codes of the official servers: request without a valid session, and unknown session. */
export const badRequest = -32000
export const sessionNotFound = -32001
/** Codes of revision 2026-07-28. */
export const headerMismatch = -32020
export const unsupportedVersion = -32022

/** Maximum number of messages in a batch. */
const maxBatch = 50

export type ContentOptions = { batches: boolean; limits: JsonLimits | undefined; workQueue: WorkQueue }
type Content = ClientMessage | ClientBatch | Malformed

/**
 * Reads the body of a POST: a message, or an array of messages if `batches` are accepted (MCP 2025-03-26
 * only). A large message is read cooperatively with other traffic; a batch must not be large.
 */
export function readClientContent(bytes: Buffer, options: ContentOptions): Content | Promise<Content> {
  const { batches, limits, workQueue } = options
  const isList = isListText(bytes.toString('latin1', 0, 1024))
  if (isLarge(bytes)) {
    if (batches && isList) return malformed(invalidRequest, 'the batch is too large: send single messages')
    return Promise.resolve(readJson(bytes, workQueue, limits)).then((json) => clientMessageOf(json, isList))
  }
  const text = bytes.toString()
  return batches && isList ? readBatch(text, limits) : readClientMessage(text, limits)
}

function isListText(text: string): boolean {
  return /^\s*\[/.test(text)
}

/** Reads a batch. One invalid message rejects the whole batch before any part is processed. */
function readBatch(text: string, limits: JsonLimits | undefined): ClientBatch | Malformed {
  // Wrapped in an object, so that the same reader detects duplicate keys at any depth.
  const json = readJsonObject(`{"batch":${text}}`, limits)
  if (json.kind === 'duplicate') return malformed(invalidRequest, `"${json.path}" occurs twice`)
  if (json.kind === 'invalid') return malformed(parseError, `the body is ${json.message}`)
  const { batch } = json.value
  if (!Array.isArray(batch) || Object.keys(json.value).length !== 1)
    return malformed(parseError, 'the body is not valid JSON')
  if (batch.length === 0 || batch.length > maxBatch) {
    return malformed(invalidRequest, `a batch must have 1 to ${maxBatch} messages`)
  }
  const messages: ClientMessage[] = []
  for (const item of itemTexts(text)) {
    const message = readClientMessage(item, limits)
    if (message.kind === 'malformed') return message
    messages.push(message)
  }
  return { kind: 'batch', messages }
}

/**
 * Reads the body of a POST: a message, or an array of messages if `batches` are accepted (MCP 2025-03-26
 * only). A large message is read cooperatively with other traffic; a batch must not be large.
 */
export function readClientMessage(text: string, limits?: JsonLimits): ClientMessage | Malformed {
  return clientMessageOf(readJsonObject(text, limits), isListText(text))
}

function clientMessageOf(json: ReadJson, isList: boolean): ClientMessage | Malformed {
  if (json.kind === 'duplicate') return malformed(invalidRequest, `"${json.path.slice(0, 200)}" occurs twice`)
  if (json.kind === 'invalid') {
    if (isList)
      return malformed(invalidRequest, 'batches are not supported in this revision: send one message')
    return malformed(parseError, `the body is ${json.message}`)
  }
  const { value } = json
  const id = value['id']
  const validId = typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id))
  const idText = validId ? textOfId(id, json) : 'null'
  const disguised = findAmbiguousMcpName(value)
  if (disguised !== undefined) return malformed(invalidRequest, messageFor(disguised), idText)
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

function messageFor({ kind, path }: NameProblem): string {
  return kind === 'ambiguous' ? `"${path}" is misspelt` : `too many unknown keys, the last of them "${path}"`
}

/** The id as JSON text; only a number beyond exact precision is read from the source text. */
function textOfId(id: string | number, json: JsonText): string {
  if (typeof id === 'string' || Number.isSafeInteger(id)) return JSON.stringify(id)
  return memberText(json, 'id') ?? 'null'
}

/** JSON text of a JSON-RPC error. `idText` is JSON. */
export function errorText(idText: string, code: number, message: string, data?: object | JsonValue): string {
  const error = JSON.stringify(data === undefined ? { code, message } : { code, message, data })
  return `{"jsonrpc":"2.0","id":${idText},"error":${error}}`
}

/** Creates a message from its value. */
export function messageOf(value: JsonObject): Message {
  return { text: JSON.stringify(value), value }
}

/** Whether the message is the response to the request with this id. */
export function isResponseTo({ value }: Message, id: string | number): boolean {
  return value['id'] === id && value['method'] === undefined
}

/** The `params` of a message; empty by default. */
export function paramsOf(value: JsonObject): JsonObject {
  const { params } = value
  return isJsonObject(params) ? params : {}
}

function malformed(code: number, message: string, idText = 'null'): Malformed {
  return { kind: 'malformed', code, message, idText }
}
