import type { JsonObject } from '../../lib/json/json.ts'
import { type FieldValue, readMessage } from '../../lib/protobuf/message-reader.ts'
import { checkedEdits, type Decision, deniedReply, type FieldEdit, InvalidDecision } from './decision.ts'
import { readStruct } from './struct.ts'

/*
 * CheckResponse status = 1 (google.rpc.Status: code = 1), denied_response = 2, ok_response = 3,
 * dynamic_metadata = 4 DeniedHttpResponse status = 1 (HttpStatus: code = 1), headers = 2, body = 3
 * OkHttpResponse headers = 2, dynamic_metadata = 3, headers_to_remove = 5, response_headers_to_add = 6,
 * query_parameters_to_set = 7 (key = 1, value = 2), query_parameters_to_remove = 8
 * HeaderValueOption header = 1 (key = 1, value = 2, raw_value = 3), append = 2 (BoolValue),
 * append_action = 3
 */

type Denied = { status: number; headers: FieldEdit[]; body: Uint8Array }
type Allowed = {
  request: FieldEdit[]
  reply: FieldEdit[]
  set: (readonly [string, string])[]
  remove: string[]
  metadata: JsonObject | undefined
}

/** Pseudo-headers that the service may change. */
const pseudoHeaders: ReadonlySet<string> = new Set([':path', ':method', ':authority', ':scheme'])

/**
 * Decodes a response of `Check`. Throws `InvalidDecision` if the bytes are not a decision. An empty message
 * has status OK by its defaults, but is not a decision: it may be of another service.
 */
export function decodeDecision(bytes: Uint8Array): Decision {
  try {
    return decode(bytes)
  } catch (error) {
    if (error instanceof InvalidDecision) throw error
    throw new InvalidDecision('the response is not a CheckResponse', { cause: error })
  }
}

function decode(bytes: Uint8Array): Decision {
  let code: number | undefined
  let denied: Denied | undefined
  let allowed: Allowed | undefined
  let metadata: JsonObject | undefined
  readMessage(bytes, (field, value) => {
    if (field === 1) code = firstInteger(value)
    else if (field === 2) denied = readDenied(value)
    else if (field === 3) allowed = readAllowed(value)
    else if (field === 4) metadata = readStruct(value)
  })
  if (code === undefined && denied === undefined && allowed === undefined)
    throw new InvalidDecision('the response has no decision')
  // The response of a refusal without a status, or with status OK, permits nothing.
  if ((code ?? 0) !== 0 || denied !== undefined) return deniedOf(denied, metadata)
  return allowedOf(allowed, metadata)
}

function deniedOf(denied: Denied | undefined, metadata: JsonObject | undefined): Decision {
  if (denied === undefined) return { kind: 'denied', reply: undefined, metadata }
  const edits = checkedEdits(denied.headers)
  return { kind: 'denied', reply: deniedReply(denied.status, edits, Buffer.from(denied.body)), metadata }
}

function allowedOf(allowed: Allowed | undefined, metadata: JsonObject | undefined): Decision {
  if (allowed === undefined) return { kind: 'allowed', request: [], query: undefined, reply: [], metadata }
  const { request, reply, set, remove } = allowed
  return {
    kind: 'allowed',
    request: checkedEdits(request, pseudoHeaders),
    query: set.length + remove.length === 0 ? undefined : { set, remove },
    reply: checkedEdits(reply),
    metadata: allowed.metadata ?? metadata,
  }
}

function readDenied(message: FieldValue): Denied {
  const denied: Denied = { status: 403, headers: [], body: new Uint8Array(0) }
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) denied.status = firstInteger(value)
    else if (field === 2) denied.headers.push(readField(value))
    else if (field === 3) denied.body = value.bytes()
  })
  return denied
}

function readAllowed(message: FieldValue): Allowed {
  const removed: FieldEdit[] = []
  const allowed: Allowed = { request: [], reply: [], set: [], remove: [], metadata: undefined }
  readMessage(message.bytes(), (field, value) => {
    if (field === 2) allowed.request.push(readField(value))
    else if (field === 3) allowed.metadata = readStruct(value)
    else if (field === 5) removed.push({ kind: 'remove', name: value.text() })
    else if (field === 6) allowed.reply.push(readField(value))
    else if (field === 7) allowed.set.push(readPair(value))
    else if (field === 8) allowed.remove.push(value.text())
  })
  // Removal precedes, as in Envoy: a field that is removed and set has the new value.
  return { ...allowed, request: [...removed, ...allowed.request] }
}

/** `append_action` by number; 0 is the default, for which `append` decides. */
const actions = ['set', 'add-if-absent', 'set', 'set-if-present'] as const

function readField(message: FieldValue): FieldEdit {
  let name = ''
  let value = ''
  let action = 0
  let appends = false
  readMessage(message.bytes(), (field, content) => {
    if (field === 1) [name, value] = readHeader(content)
    else if (field === 2) appends = firstInteger(content) !== 0
    else if (field === 3) action = content.integer()
  })
  const kind = actions[action]
  if (kind === undefined) throw new InvalidDecision('the response has an unknown append_action')
  return { kind: action === 0 && appends ? 'append' : kind, name, value }
}

function readHeader(message: FieldValue): [name: string, value: string] {
  let name = ''
  let value = ''
  let raw = ''
  readMessage(message.bytes(), (field, content) => {
    // Header values have one character per byte.
    if (field === 1) name = content.text()
    else if (field === 2) value = latin1(content.bytes())
    else if (field === 3) raw = latin1(content.bytes())
  })
  return [name, raw === '' ? value : raw]
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1')
}

function readPair(message: FieldValue): [string, string] {
  let name = ''
  let value = ''
  readMessage(message.bytes(), (field, content) => {
    if (field === 1) name = content.text()
    else if (field === 2) value = content.text()
  })
  return [name, value]
}

/** Field 1 of a message, 0 without one. */
function firstInteger(message: FieldValue): number {
  let number = 0
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) number = value.integer()
  })
  return number
}
