import type { JsonObject } from '../../../lib/json/json.ts'
import { type FieldValue, readMessage } from '../../../lib/protobuf/message-reader.ts'
import type {
  BodyMutation,
  Direction,
  HeaderAction,
  HeaderMutation,
  HeaderOption,
  ImmediateResponse,
  ModeOverride,
  Phase,
  ProcessorMessage,
  StepResponse,
} from './messages.ts'
import { readStruct } from './struct.ts'

/*
 * ProcessingResponse request_headers = 1, response_headers = 2, request_body = 3, response_body = 4,
 * request_trailers = 5, response_trailers = 6, immediate_response = 7, dynamic_metadata = 8,
 * mode_override = 9, streamed_immediate_response = 11. HeadersResponse, BodyResponse: response = 1.
 * TrailersResponse header_mutation = 1.
 */

const steps: readonly (readonly [Direction, Phase])[] = [
  ['request', 'headers'],
  ['response', 'headers'],
  ['request', 'body'],
  ['response', 'body'],
  ['request', 'trailers'],
  ['response', 'trailers'],
]

const none = { kind: 'none' } as const

/** Decodes a message of a processor. Throws `RangeError` if the bytes are not a valid message. */
export function decodeMessage(bytes: Uint8Array): ProcessorMessage {
  let response: ProcessorMessage['response'] = none
  let metadata: JsonObject | undefined
  let modeOverride: ModeOverride | undefined
  readMessage(bytes, (field, value) => {
    const step = steps[field - 1]
    if (step !== undefined) response = readStep(value.bytes(), step)
    else if (field === 7) response = readImmediate(value.bytes())
    else if (field === 8) metadata = readStruct(value.bytes())
    else if (field === 9) modeOverride = readModes(value.bytes())
    else if (field === 11) throw new RangeError('streamed immediate responses are not supported')
  })
  return { response, metadata, modeOverride }
}

function readStep(bytes: Uint8Array, [direction, phase]: readonly [Direction, Phase]): StepResponse {
  let step: StepResponse = {
    kind: 'step',
    direction,
    phase,
    replacesMessage: false,
    headers: undefined,
    body: undefined,
  }
  readMessage(bytes, (field, value) => {
    if (field !== 1) return
    if (phase === 'trailers') step = { ...step, headers: readHeaderMutation(value.bytes()) }
    else step = { ...step, ...readCommon(value.bytes()) }
  })
  return step
}

/** CommonResponse status = 1 (1 replaces the message), header_mutation = 2, body_mutation = 3. */
function readCommon(bytes: Uint8Array): Pick<StepResponse, 'replacesMessage' | 'headers' | 'body'> {
  let replacesMessage = false
  let headers: HeaderMutation | undefined
  let body: BodyMutation | undefined
  readMessage(bytes, (field, value) => {
    if (field === 1) replacesMessage = value.integer() === 1
    else if (field === 2) headers = readHeaderMutation(value.bytes())
    else if (field === 3) body = readBodyMutation(value.bytes())
  })
  return { replacesMessage, headers, body }
}

const nothing = new Uint8Array(0)

/** BodyMutation body = 1, clear_body = 2, streamed_response = 3 (body = 1, end_of_stream = 2). */
function readBodyMutation(bytes: Uint8Array): BodyMutation | undefined {
  let mutation: BodyMutation | undefined
  readMessage(bytes, (field, value) => {
    if (field === 1) mutation = { kind: 'replace', bytes: value.bytes() }
    else if (field === 2) mutation = value.boolean() ? { kind: 'replace', bytes: nothing } : undefined
    else if (field === 3) mutation = readStreamed(value.bytes())
  })
  return mutation
}

function readStreamed(bytes: Uint8Array): BodyMutation {
  let body: Uint8Array = nothing
  let isLast = false
  readMessage(bytes, (field, value) => {
    if (field === 1) body = value.bytes()
    else if (field === 2) isLast = value.boolean()
  })
  return { kind: 'streamed', bytes: body, isLast }
}

/** HeaderMutation set_headers = 1, remove_headers = 2. */
function readHeaderMutation(bytes: Uint8Array): HeaderMutation {
  const set: HeaderOption[] = []
  const remove: string[] = []
  readMessage(bytes, (field, value) => {
    if (field === 1) set.push(readHeaderOption(value.bytes()))
    else if (field === 2) remove.push(value.text())
  })
  return { set, remove }
}

/** The default of `append_action` is that of `append`: overwrite. */
const actions: readonly HeaderAction[] = ['overwrite', 'addIfAbsent', 'overwrite', 'overwriteIfExists']

/** HeaderValueOption header = 1 (key = 1, value = 2, raw_value = 3), append = 2, append_action = 3. */
function readHeaderOption(bytes: Uint8Array): HeaderOption {
  let name = ''
  let value = ''
  let isAppended = false
  let action = 0
  readMessage(bytes, (field, content) => {
    if (field === 1) {
      readMessage(content.bytes(), (part, text) => {
        if (part === 1) name = text.text()
        else if (part === 2) value ||= latin1Of(text)
        else if (part === 3) value = latin1Of(text) || value
      })
    } else if (field === 2) isAppended = readNumber(content.bytes()) !== 0
    else if (field === 3) action = content.integer()
  })
  const known = actions[action]
  if (known === undefined) throw new RangeError('a header has an unknown append action')
  return { name, value, action: action === 0 && isAppended ? 'append' : known }
}

function latin1Of(value: FieldValue): string {
  const bytes = value.bytes()
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

/** ImmediateResponse status = 1 (code = 1), headers = 2, body = 3, grpc_status = 4 (status = 1). */
function readImmediate(bytes: Uint8Array): ImmediateResponse {
  let status = 200
  let headers: HeaderMutation | undefined
  let body: Uint8Array = nothing
  let grpcStatus: number | undefined
  readMessage(bytes, (field, value) => {
    if (field === 1) status = readNumber(value.bytes()) || 200
    else if (field === 2) headers = readHeaderMutation(value.bytes())
    else if (field === 3) body = value.bytes()
    else if (field === 4) grpcStatus = readNumber(value.bytes())
  })
  if (status < 200 || status > 599) throw new RangeError('an immediate response has no valid status')
  return { kind: 'immediate', status, headers, body, grpcStatus }
}

function readNumber(bytes: Uint8Array): number {
  let number = 0
  readMessage(bytes, (field, value) => {
    if (field === 1) number = value.integer()
  })
  return number
}

/**
 * ProcessingMode request_header_mode = 1, response_header_mode = 2, request_body_mode = 3,
 * response_body_mode = 4, request_trailer_mode = 5, response_trailer_mode = 6.
 */
function readModes(bytes: Uint8Array): ModeOverride {
  const numbers = [0, 0, 0, 0, 0, 0, 0]
  readMessage(bytes, (field, value) => {
    if (field <= 6) numbers[field] = value.integer()
  })
  const [
    ,
    ,
    responseHeaders = 0,
    requestBody = 0,
    responseBody = 0,
    requestTrailers = 0,
    responseTrailers = 0,
  ] = numbers
  return { responseHeaders, requestBody, responseBody, requestTrailers, responseTrailers }
}
