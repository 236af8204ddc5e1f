import type { JsonObject } from '../../../lib/json/json.ts'
import { createMessageWriter, type MessageWriter } from '../../../lib/protobuf/message-writer.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { type BodyMode, bodyModes, type Direction } from './messages.ts'
import { writeStruct } from './struct.ts'

/*
 * ProcessingRequest request_headers = 2, response_headers = 3, request_body = 4, response_body = 5,
 * request_trailers = 6, response_trailers = 7, metadata_context = 8 (filter_metadata = 1), attributes = 9,
 * protocol_config = 11 (request_body_mode = 1, response_body_mode = 2). HttpHeaders headers = 1
 * (headers = 1), end_of_stream = 3. HttpBody body = 1, end_of_stream = 2. HttpTrailers trailers = 1.
 * HeaderValue key = 1, value = 2, raw_value = 3.
 */

/** Pseudo-headers with their values. */
export type PseudoHeaders = readonly (readonly [name: string, value: string])[]

/** Encoder of the messages to a processor. `context` is encoded by `createContext`. */
export type Encoder = {
  headers(direction: Direction, head: Head, context: Uint8Array): Uint8Array
  body(direction: Direction, content: Content, context: Uint8Array): Uint8Array
  trailers(direction: Direction, fields: Headers, context: Uint8Array): Uint8Array
  /** Fields beside the step: `metadata_context` and `attributes`, by namespace, and `protocol_config`. */
  context(values: ContextValues): Uint8Array
}

export type Head = {
  readonly pseudo: PseudoHeaders
  readonly headers: Headers
  /** The message has no body. */
  readonly isComplete: boolean
}

export type Content = { readonly bytes: Uint8Array; readonly isLast: boolean }

export type ContextValues = {
  readonly metadata?: readonly Namespace[] | undefined
  readonly attributes?: readonly Namespace[] | undefined
  readonly modes?: { readonly requestBody: BodyMode; readonly responseBody: BodyMode } | undefined
}

type Namespace = readonly [name: string, values: JsonObject]

export function createEncoder(): Encoder {
  const writer = createMessageWriter()
  return {
    headers(direction, { pseudo, headers, isComplete }, context) {
      writer.start()
      writer.begin(direction === 'request' ? 2 : 3)
      writer.begin(1)
      for (const [name, value] of pseudo) writePseudo(writer, name, value)
      writeFields(writer, headers)
      writer.end()
      writer.boolean(3, isComplete)
      writer.end()
      writer.encoded(context)
      return writer.finish()
    },
    body(direction, { bytes, isLast }, context) {
      writer.start()
      writer.begin(direction === 'request' ? 4 : 5)
      writer.bytes(1, bytes)
      writer.boolean(2, isLast)
      writer.end()
      writer.encoded(context)
      return writer.finish()
    },
    trailers(direction, fields, context) {
      writer.start()
      writer.begin(direction === 'request' ? 6 : 7)
      writer.begin(1)
      writeFields(writer, fields)
      writer.end()
      writer.end()
      writer.encoded(context)
      return writer.finish()
    },
    context({ metadata = [], attributes = [], modes }) {
      writer.start()
      if (metadata.length > 0) {
        writer.begin(8)
        for (const namespace of metadata) writeNamespace(writer, 1, namespace)
        writer.end()
      }
      for (const namespace of attributes) writeNamespace(writer, 9, namespace)
      if (modes !== undefined) {
        writer.begin(11)
        writer.integer(1, bodyModes.indexOf(modes.requestBody))
        writer.integer(2, bodyModes.indexOf(modes.responseBody))
        writer.end()
      }
      return writer.finish()
    },
  }
}

function writeNamespace(writer: MessageWriter, field: number, [name, values]: Namespace): void {
  writer.begin(field)
  writer.text(1, name)
  writer.begin(2)
  writeStruct(writer, Object.entries(values))
  writer.end()
  writer.end()
}

/** Servers read pseudo-headers from either field. */
function writePseudo(writer: MessageWriter, name: string, value: string): void {
  writer.begin(1)
  writer.text(1, name)
  writer.text(2, value)
  writeRaw(writer, value)
  writer.end()
}

function writeFields(writer: MessageWriter, headers: Headers): void {
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined) continue
    if (typeof value === 'string') writeField(writer, name, value)
    else for (const line of value) writeField(writer, name, line)
  }
}

function writeField(writer: MessageWriter, name: string, value: string): void {
  writer.begin(1)
  writer.text(1, name)
  writeRaw(writer, value)
  writer.end()
}

const nonAscii = /[^\0-\x7f]/

/** Field values are Latin-1 (RFC 9110 section 5.5). */
function writeRaw(writer: MessageWriter, value: string): void {
  if (nonAscii.test(value)) writer.bytes(3, Buffer.from(value, 'latin1'))
  else writer.text(3, value)
}
