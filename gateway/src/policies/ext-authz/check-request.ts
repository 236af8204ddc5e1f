import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedCel } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import { evaluateToWrite } from '../../cel/results.ts'
import { createMessageWriter, type MessageWriter } from '../../lib/protobuf/message-writer.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { ExtAuthzConfig } from './config.ts'
import {
  bodySize,
  headerText,
  hostOf,
  methodOf,
  pathAndQuery,
  type RequestView,
  viewedHeaders,
} from './request-view.ts'
import { writeStruct } from './struct.ts'

/*
 * CheckRequest attributes = 1 AttributeContext source = 1, destination = 2, request = 4,
 * context_extensions = 10 (map), metadata_context = 11 (filter_metadata = 1, map of Struct), tls_session = 12
 * (sni = 1) Peer address = 1 (socket_address = 1: address = 2, port_value = 3), principal = 4
 * Request time = 1 (seconds = 1, nanos = 2), http = 2 HttpRequest id = 1, method = 2, headers = 3 (map),
 * path = 4, host = 5, scheme = 6, size = 9, protocol = 10, body = 11, raw_body = 12
 */

/** Encodes the message of `Check` about a request. */
export type EncodeCheck = (view: RequestView) => Uint8Array

type NamedProgram = readonly [name: string, program: CelProgram]

/** Compiles the encoding. `variables` are the CEL variables of request heads. */
export function compileCheckRequest(config: ExtAuthzConfig, variables: ReadonlySet<string>): EncodeCheck {
  const { context = {}, metadata } = config.protocol?.grpc ?? {}
  const constants = encodeConstants(context)
  const programs = metadata && Object.entries(metadata).map(compileMetadata)
  const writeHeaders = compileHeaders(config.includeRequestHeaders)
  const packsBytes = config.includeRequestBody?.packAsBytes === true
  // Encoding is synchronous, so that one writer serves all requests.
  const writer = createMessageWriter()

  function compileMetadata([name, source]: [string, string]): NamedProgram {
    return [name, compileCheckedCel(source, variables)]
  }

  return (view) => {
    const { connection } = view.exchange
    const { source } = view.facts
    writer.begin(1)
    writePeer(writer, 1, { ...source, principal: principalOf(view) })
    writePeer(writer, 2, { address: connection.localAddress, port: connection.localPort, principal: '' })
    writer.begin(4)
    writeTime(writer, view.facts.request.arrivedAt)
    writer.begin(2)
    writeHttp(writer, view, writeHeaders)
    if (view.body !== undefined) writeBody(writer, view.body.bytes, packsBytes)
    writer.end()
    writer.end()
    writer.encoded(constants)
    writeMetadata(writer, view, programs)
    if (connection.scheme === 'https') {
      writer.begin(12)
      writer.text(1, connection.serverName ?? '')
      writer.end()
    }
    writer.end()
    return writer.finish()
  }
}

function encodeConstants(context: Readonly<Record<string, string>>): Uint8Array {
  const writer = createMessageWriter()
  for (const [name, value] of Object.entries(context)) writeEntry(writer, 10, name, value)
  return writer.finish()
}

function writeEntry(writer: MessageWriter, field: number, name: string, value: string): void {
  writer.begin(field)
  writer.text(1, name)
  writer.text(2, value)
  writer.end()
}

type Peer = { readonly address: string; readonly port: number; readonly principal: string }

function writePeer(writer: MessageWriter, field: number, { address, port, principal }: Peer): void {
  writer.begin(field)
  writer.begin(1)
  writer.begin(1)
  writer.text(2, address)
  writer.integer(3, port)
  writer.end()
  writer.end()
  writer.text(4, principal)
  writer.end()
}

/** Identity of the client certificate, if the connection has a verified one, as in Envoy. */
function principalOf({ facts: { source } }: RequestView): string {
  if (!('subject' in source)) return ''
  return source.spiffeId ?? source.subjectAltNames?.[0] ?? source.subject ?? ''
}

function writeTime(writer: MessageWriter, milliseconds: number | undefined): void {
  if (milliseconds === undefined) return
  const seconds = Math.floor(milliseconds / 1000)
  writer.begin(1)
  writer.integer(1, seconds)
  writer.integer(2, Math.round((milliseconds - seconds * 1000) * 1_000_000))
  writer.end()
}

type WriteHeaders = (writer: MessageWriter, view: RequestView) => void

function writeHttp(writer: MessageWriter, view: RequestView, writeHeaders: WriteHeaders): void {
  const { request } = view.facts
  const requestId = view.exchange.requestId ?? request.headers['x-request-id']
  writer.text(1, typeof requestId === 'string' ? requestId : '')
  writer.text(2, methodOf(view))
  writeHeaders(writer, view)
  writer.text(4, pathAndQuery(view))
  writer.text(5, hostOf(view))
  writer.text(6, request.scheme)
  writer.integer(9, bodySize(view))
  writer.text(10, protocolOf(request.version))
}

/** Name of the version in Envoy. */
function protocolOf(version: string): string {
  const number = version.startsWith('HTTP/') ? version.slice('HTTP/'.length) : version
  return number === '2.0' ? 'HTTP/2' : `HTTP/${number}`
}

function writeBody(writer: MessageWriter, bytes: Buffer, packsBytes: boolean): void {
  if (packsBytes) writer.bytes(12, bytes)
  else writer.text(11, bytes.toString())
}

/** Headers of a check: the configured ones, or all with the pseudo-headers. */
function compileHeaders(names: readonly string[] | undefined): WriteHeaders {
  if (names === undefined || names.length === 0) {
    return (writer, view) => {
      for (const name of pseudoHeaders) writeEntry(writer, 3, name, pseudoHeader(name, view))
      const headers = viewedHeaders(view)
      for (const name in headers) writeHeader(writer, name, headers)
    }
  }
  const included = names.map((name) => name.toLowerCase())
  return (writer, view) => {
    const headers = viewedHeaders(view)
    for (const name of included) {
      if (name.startsWith(':')) writeEntry(writer, 3, name, pseudoHeader(name, view))
      else if (name === 'host') writeEntry(writer, 3, name, hostOf(view))
      else writeHeader(writer, name, headers)
    }
  }
}

function writeHeader(writer: MessageWriter, name: string, headers: Headers): void {
  const value = headers[name]
  if (value !== undefined) writeEntry(writer, 3, name, headerText(value, name))
}

const pseudoHeaders = [':method', ':path', ':authority', ':scheme'] as const

function pseudoHeader(name: string, view: RequestView): string {
  const { request } = view.facts
  if (name === ':method') return methodOf(view)
  if (name === ':path') return pathAndQuery(view)
  return name === ':authority' ? hostOf(view) : request.scheme
}

/** Name of the claims in Envoy, for services that read it. */
const jwtMetadata = 'envoy.filters.http.jwt_authn'

function writeMetadata(
  writer: MessageWriter,
  { facts }: RequestView,
  programs: readonly NamedProgram[] | undefined,
): void {
  // Envoy always writes the message.
  writer.begin(11)
  if (programs === undefined) {
    if (facts.jwt !== undefined) writeNamed(writer, jwtMetadata, { jwt_payload: facts.jwt })
  } else {
    for (const [name, program] of programs) {
      const value = evaluateMap(program, facts)
      if (value !== undefined) writeNamed(writer, name, value)
    }
  }
  writer.end()
}

function writeNamed(writer: MessageWriter, name: string, value: object): void {
  writer.begin(1)
  writer.text(1, name)
  writer.begin(2)
  writeStruct(writer, value)
  writer.end()
  writer.end()
}

/** A map without a value, for example of claims without a token, is omitted. */
function evaluateMap(program: CelProgram, facts: object): object | undefined {
  try {
    const value = evaluateToWrite(program, facts)
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isMap && !(value instanceof Uint8Array) ? value : undefined
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}
