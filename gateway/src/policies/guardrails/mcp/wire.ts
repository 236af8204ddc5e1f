import type { JsonValue } from '../../../lib/json/json.ts'
import { type FieldValue, readMessage } from '../../../lib/protobuf/message-reader.ts'
import type { MessageWriter } from '../../../lib/protobuf/message-writer.ts'
import { writeStruct } from '../../../lib/protobuf/struct.ts'

/*
 * The messages of `agentgateway.dev.ext_mcp.ExtMcp`:
 *
 * McpRequest service_names = 1, method = 2, metadata_context = 3 (Struct), mcp_request = 4, headers = 5
 * McpResponse service_names = 1, method = 2, metadata_context = 3, mcp_response = 4
 * McpRequestResult pass = 1, mutated = 2, error = 3, header_mutation = 4, metadata = 5
 * McpResponseResult pass = 1, mutated = 2, error = 3
 * HeaderMutation set = 1 (McpHeader), remove = 2; McpHeader key = 1, value = 2
 * AuthorizationError code = 1, reason = 2, mcp_error = 3
 */

export const checkRequestPath = '/agentgateway.dev.ext_mcp.ExtMcp/CheckRequest'
export const checkResponsePath = '/agentgateway.dev.ext_mcp.ExtMcp/CheckResponse'

/** A message to check. `content` is the JSON text of its parameters or its result. */
export type CheckedMessage = {
  readonly target: string
  readonly method: string
  readonly metadata: object | undefined
  readonly content: string | undefined
  /** In the request phase. */
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/** Decision of the service. */
export type ServiceVerdict =
  | { readonly kind: 'pass' | 'mutated'; readonly text: string; readonly headers: HeaderMutation }
  | {
      readonly kind: 'error'
      readonly code: number
      readonly reason: string
      readonly data: string | undefined
    }

export type HeaderMutation = {
  readonly set: readonly (readonly [name: string, value: string])[]
  readonly remove: readonly string[]
}

/** Encodes an `McpRequest` or `McpResponse`: they have the same fields. */
export function encodeMessage(
  writer: MessageWriter,
  { target, method, metadata, content, headers }: CheckedMessage,
): Uint8Array {
  writer.start()
  writer.text(1, target)
  writer.text(2, method)
  if (metadata !== undefined) {
    writer.begin(3)
    writeStruct(writer, metadata)
    writer.end()
  }
  if (content !== undefined) writer.text(4, content)
  for (const [name, value] of headers) {
    writer.begin(5)
    writer.text(1, name)
    // Header fields are bytes, decoded as Latin-1.
    writer.bytes(2, Buffer.from(value, 'latin1'))
    writer.end()
  }
  return writer.finish()
}

/** Decodes a result. Throws `RangeError` if the bytes are not a result with a decision. */
export function decodeVerdict(bytes: Uint8Array): ServiceVerdict {
  let verdict:
    | { kind: 'pass' | 'mutated'; text: string }
    | Extract<ServiceVerdict, { kind: 'error' }>
    | undefined
  let headers: HeaderMutation = { set: [], remove: [] }
  readMessage(bytes, (field, value) => {
    if (field === 1) verdict = { kind: 'pass', text: '' }
    else if (field === 2) verdict = { kind: 'mutated', text: textOf(value) }
    else if (field === 3) verdict = readError(value)
    else if (field === 4) headers = readHeaders(value)
  })
  if (verdict === undefined) throw new RangeError('the result has no decision')
  return verdict.kind === 'error' ? verdict : { ...verdict, headers }
}

/** Codes of `AuthorizationError` as JSON-RPC codes. */
const errorCodes = [-32603, -32001, -32003, -32600] as const

function readError(message: FieldValue): Extract<ServiceVerdict, { kind: 'error' }> {
  let code = 0
  let reason = ''
  let data: string | undefined
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) code = value.integer()
    else if (field === 2) reason = value.text()
    else if (field === 3) data = textOf(value)
  })
  return { kind: 'error', code: errorCodes[code] ?? errorCodes[0], reason, data }
}

/** Data of an error as a JSON value; undefined if it is not JSON. */
export function errorData(text: string | undefined): JsonValue | undefined {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

function readHeaders(message: FieldValue): HeaderMutation {
  const set: [string, string][] = []
  const remove: string[] = []
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) set.push(readHeader(value))
    else if (field === 2) remove.push(value.text())
  })
  return { set, remove }
}

function readHeader(message: FieldValue): [string, string] {
  let key = ''
  let text = ''
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) key = value.text()
    else if (field === 2) text = Buffer.from(value.bytes()).toString('latin1')
  })
  return [key, text]
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Throws `TypeError` for bytes that are not UTF-8. */
function textOf(value: FieldValue): string {
  return utf8.decode(value.bytes())
}
