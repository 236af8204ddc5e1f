import { createServer } from 'node:http2'
import {
  createFileRegistry,
  type DescMethod,
  type DescMethodBiDiStreaming,
  fromBinary,
  fromJson,
  type JsonObject,
  type Message,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema, file_google_protobuf_struct } from '@bufbuild/protobuf/wkt'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { endAfter, type Lifetime } from './cleanup.ts'

/*
 * An external processor as Envoy's protocol defines it, made of the descriptions of its messages and another
 * gRPC implementation than the gateway's. Messages are the JSON form of protobuf: bytes are Base64.
 */

/** A message of the gateway: one of the steps, with its further fields. */
export type Seen = {
  requestHeaders?: { headers: { headers: Field[] }; endOfStream?: boolean }
  responseHeaders?: { headers: { headers: Field[] }; endOfStream?: boolean }
  requestBody?: { body?: string; endOfStream?: boolean }
  responseBody?: { body?: string; endOfStream?: boolean }
  requestTrailers?: { trailers: { headers: Field[] } }
  responseTrailers?: { trailers: { headers: Field[] } }
  metadataContext?: { filterMetadata: Record<string, JsonObject> }
  attributes?: Record<string, JsonObject>
  protocolConfig?: JsonObject
}
type Field = { key: string; value?: string; rawValue?: string }

/** The responses to a stream of messages. */
export type Behaviour = (messages: AsyncIterable<Seen>, call: Call) => AsyncIterable<JsonObject>
type Call = { readonly headers: Headers; readonly ended: AbortSignal }

export type Processor = {
  readonly host: string
  /** May be changed while it runs. */
  behaviour: Behaviour
  readonly seen: Seen[]
  /** Streams in progress. */
  readonly open: () => number
  /** Streams so far. */
  readonly streams: () => number
  connections: number
  /** Ends every connection, and accepts no further ones. */
  stop(): Promise<void>
  /** Accepts connections again. */
  start(): Promise<void>
}

const packageName = 'envoy.service.ext_proc.v3'
const field = (name: string, number: number, type: string, more: JsonObject = {}) => ({
  name,
  jsonName: name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
  number,
  type: `TYPE_${type}`,
  label: 'LABEL_OPTIONAL',
  ...more,
})
const of = (name: string) => ({ typeName: name.startsWith('.') ? name : `.${packageName}.${name}` })
const repeated = { label: 'LABEL_REPEATED' }
const inOneof = { oneofIndex: 0 }
const message = (name: string, number: number, type: string, more: JsonObject = {}) =>
  field(name, number, 'MESSAGE', { ...of(type), ...more })
const enumeration = (name: string, values: readonly string[]) => ({
  name,
  value: values.map((value, number) => ({ name: value, number })),
})
const mapEntry = (name: string) => ({
  name,
  field: [field('key', 1, 'STRING'), message('value', 2, '.google.protobuf.Struct')],
  options: { mapEntry: true },
})

const messageType = [
  {
    name: 'HeaderValue',
    field: [field('key', 1, 'STRING'), field('value', 2, 'STRING'), field('raw_value', 3, 'BYTES')],
  },
  { name: 'HeaderMap', field: [message('headers', 1, 'HeaderValue', repeated)] },
  { name: 'HttpHeaders', field: [message('headers', 1, 'HeaderMap'), field('end_of_stream', 3, 'BOOL')] },
  { name: 'HttpBody', field: [field('body', 1, 'BYTES'), field('end_of_stream', 2, 'BOOL')] },
  { name: 'HttpTrailers', field: [message('trailers', 1, 'HeaderMap')] },
  {
    name: 'Metadata',
    field: [message('filter_metadata', 1, 'Metadata.FilterMetadataEntry', repeated)],
    nestedType: [mapEntry('FilterMetadataEntry')],
  },
  {
    name: 'ProtocolConfiguration',
    field: [
      field('request_body_mode', 1, 'ENUM', of('BodySendMode')),
      field('response_body_mode', 2, 'ENUM', of('BodySendMode')),
    ],
  },
  {
    name: 'ProcessingRequest',
    oneofDecl: [{ name: 'request' }],
    field: [
      message('request_headers', 2, 'HttpHeaders', inOneof),
      message('response_headers', 3, 'HttpHeaders', inOneof),
      message('request_body', 4, 'HttpBody', inOneof),
      message('response_body', 5, 'HttpBody', inOneof),
      message('request_trailers', 6, 'HttpTrailers', inOneof),
      message('response_trailers', 7, 'HttpTrailers', inOneof),
      message('metadata_context', 8, 'Metadata'),
      message('attributes', 9, 'ProcessingRequest.AttributesEntry', repeated),
      message('protocol_config', 11, 'ProtocolConfiguration'),
    ],
    nestedType: [mapEntry('AttributesEntry')],
  },
  { name: 'BoolValue', field: [field('value', 1, 'BOOL')] },
  {
    name: 'HeaderValueOption',
    field: [
      message('header', 1, 'HeaderValue'),
      message('append', 2, 'BoolValue'),
      field('append_action', 3, 'INT32'),
    ],
  },
  {
    name: 'HeaderMutation',
    field: [
      message('set_headers', 1, 'HeaderValueOption', repeated),
      field('remove_headers', 2, 'STRING', repeated),
    ],
  },
  {
    name: 'StreamedBodyResponse',
    field: [field('body', 1, 'BYTES'), field('end_of_stream', 2, 'BOOL')],
  },
  {
    name: 'BodyMutation',
    oneofDecl: [{ name: 'mutation' }],
    field: [
      field('body', 1, 'BYTES', inOneof),
      field('clear_body', 2, 'BOOL', inOneof),
      message('streamed_response', 3, 'StreamedBodyResponse', inOneof),
    ],
  },
  {
    name: 'CommonResponse',
    field: [
      field('status', 1, 'INT32'),
      message('header_mutation', 2, 'HeaderMutation'),
      message('body_mutation', 3, 'BodyMutation'),
      field('clear_route_cache', 5, 'BOOL'),
    ],
  },
  { name: 'HeadersResponse', field: [message('response', 1, 'CommonResponse')] },
  { name: 'BodyResponse', field: [message('response', 1, 'CommonResponse')] },
  { name: 'TrailersResponse', field: [message('header_mutation', 1, 'HeaderMutation')] },
  { name: 'HttpStatus', field: [field('code', 1, 'INT32')] },
  { name: 'GrpcStatus', field: [field('status', 1, 'UINT32')] },
  {
    name: 'ImmediateResponse',
    field: [
      message('status', 1, 'HttpStatus'),
      message('headers', 2, 'HeaderMutation'),
      field('body', 3, 'STRING'),
      message('grpc_status', 4, 'GrpcStatus'),
      field('details', 5, 'STRING'),
    ],
  },
  {
    name: 'ProcessingMode',
    field: [
      field('request_header_mode', 1, 'INT32'),
      field('response_header_mode', 2, 'INT32'),
      field('request_body_mode', 3, 'ENUM', of('BodySendMode')),
      field('response_body_mode', 4, 'ENUM', of('BodySendMode')),
      field('request_trailer_mode', 5, 'INT32'),
      field('response_trailer_mode', 6, 'INT32'),
    ],
  },
  {
    name: 'ProcessingResponse',
    oneofDecl: [{ name: 'response' }],
    field: [
      message('request_headers', 1, 'HeadersResponse', inOneof),
      message('response_headers', 2, 'HeadersResponse', inOneof),
      message('request_body', 3, 'BodyResponse', inOneof),
      message('response_body', 4, 'BodyResponse', inOneof),
      message('request_trailers', 5, 'TrailersResponse', inOneof),
      message('response_trailers', 6, 'TrailersResponse', inOneof),
      message('immediate_response', 7, 'ImmediateResponse', inOneof),
      message('dynamic_metadata', 8, '.google.protobuf.Struct'),
      message('mode_override', 9, 'ProcessingMode'),
    ],
  },
]

const registry = createFileRegistry(
  fromJson(FileDescriptorSetSchema, {
    file: [
      {
        name: 'ext_proc.proto',
        package: packageName,
        syntax: 'proto3',
        dependency: ['google/protobuf/struct.proto'],
        enumType: [
          enumeration('BodySendMode', [
            'NONE',
            'STREAMED',
            'BUFFERED',
            'BUFFERED_PARTIAL',
            'FULL_DUPLEX_STREAMED',
          ]),
        ],
        messageType,
        service: [
          {
            name: 'ExternalProcessor',
            method: [
              {
                name: 'Process',
                ...{ inputType: `.${packageName}.ProcessingRequest`, clientStreaming: true },
                ...{ outputType: `.${packageName}.ProcessingResponse`, serverStreaming: true },
              },
            ],
          },
        ],
      },
    ],
  }).file[0] ?? failed(),
  (name) => (name === 'google/protobuf/struct.proto' ? file_google_protobuf_struct : undefined),
)

function failed(): never {
  throw new Error('the description of the service lacks a part')
}

function bidirectional(found: DescMethod | undefined): DescMethodBiDiStreaming {
  if (found !== undefined && isBidirectional(found)) return found
  return failed()
}

function isBidirectional(found: DescMethod): found is DescMethodBiDiStreaming {
  return found.methodKind === 'bidi_streaming'
}

const method = bidirectional(registry.getService(`${packageName}.ExternalProcessor`)?.methods[0])
const requestSchema = registry.getMessage(`${packageName}.ProcessingRequest`) ?? failed()
const responseSchema = registry.getMessage(`${packageName}.ProcessingResponse`) ?? failed()

/** The encoded form of a response of the processor. */
export function encoded(response: JsonObject): Uint8Array {
  return toBinary(responseSchema, fromJson(responseSchema, response))
}

/** The JSON form of an encoded message of the gateway. */
export function readMessage(bytes: Uint8Array): unknown {
  return toJson(requestSchema, fromBinary(requestSchema, bytes), { registry })
}

/** Starts the processor on a free port. */
export async function startProcessor(
  behaviour: Behaviour,
  { lifetime = 'test' }: { lifetime?: Lifetime } = {},
): Promise<Processor> {
  const sessions = new Set<{ destroy(): void }>()
  let open = 0
  let streams = 0
  let port = 0
  const processor: Processor = {
    get host() {
      return `127.0.0.1:${port}`
    },
    behaviour,
    seen: [],
    open: () => open,
    streams: () => streams,
    connections: 0,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const session of sessions) session.destroy()
      await closed
      server = listenable()
    },
    start,
  }
  let server = listenable()

  function listenable() {
    const handler = connectNodeAdapter({
      routes: (router) =>
        router.rpc(method, async function* process(requests, context) {
          open += 1
          streams += 1
          // A behaviour that waits forever never returns.
          let isOver = false
          const over = () => {
            if (!isOver) open -= 1
            isOver = true
          }
          context.signal.addEventListener('abort', over)
          try {
            const call = { headers: context.requestHeader, ended: context.signal }
            const messages = recorded(requests, processor.seen)
            for await (const reply of processor.behaviour(messages, call)) {
              yield fromJson(responseSchema, reply)
            }
          } finally {
            over()
          }
        }),
    })
    const created = createServer(handler)
    created.on('session', (session) => {
      processor.connections += 1
      sessions.add(session)
      session.on('close', () => sessions.delete(session))
    })
    return created
  }

  async function start() {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', resolve)
    })
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    port = address.port
  }

  await start()
  endAfter(lifetime, () => {
    server.close()
    for (const session of sessions) session.destroy()
  })
  return processor
}

async function* recorded(requests: AsyncIterable<Message>, seen: Seen[]): AsyncIterable<Seen> {
  for await (const request of requests) {
    const step = readSeen(toJson(requestSchema, request, { registry }))
    seen.push(step)
    yield step
  }
}

/** Wire guard: a message in the form of the descriptions above. */
function readSeen(json: unknown): Seen {
  return json as Seen
}

/** Responds to each message on its own. */
export function each(respond: (message: Seen) => JsonObject | readonly JsonObject[] | undefined): Behaviour {
  return async function* responses(messages) {
    for await (const received of messages) {
      const found = respond(received)
      if (Array.isArray(found)) yield* found
      else if (found !== undefined) yield found as JsonObject
    }
  }
}

/** The response without changes to a message, in full duplex or not. */
export function unchanged(received: Seen, isDuplex = false): JsonObject | undefined {
  if (received.requestHeaders) return { requestHeaders: {} }
  if (received.responseHeaders) return { responseHeaders: {} }
  if (received.requestBody) return { requestBody: isDuplex ? streamed(received.requestBody) : {} }
  if (received.responseBody) return { responseBody: isDuplex ? streamed(received.responseBody) : {} }
  if (received.requestTrailers) return { requestTrailers: {} }
  return received.responseTrailers ? { responseTrailers: {} } : undefined
}

/** A chunk of a full duplex body. */
export function streamed({ body = '', endOfStream = false }: { body?: string; endOfStream?: boolean }) {
  return { response: { bodyMutation: { streamedResponse: { body, endOfStream } } } }
}

/** A mutation of headers: values to set, with an action, and names to remove. */
export function headers(
  set: Record<string, string>,
  { remove = [], action = 0 }: { remove?: string[]; action?: number } = {},
): JsonObject {
  return {
    setHeaders: Object.entries(set).map(([key, value]) => ({
      header: { key, rawValue: base64(value) },
      appendAction: action,
    })),
    removeHeaders: remove,
  }
}

export function base64(text: string | Uint8Array): string {
  return Buffer.from(text).toString('base64')
}

export function textOf(body: string | undefined): string {
  return Buffer.from(body ?? '', 'base64').toString()
}

/** The fields of a message by name. */
export function fieldsOf(received: { headers: { headers: Field[] } } | undefined): Record<string, string> {
  return Object.fromEntries(
    (received?.headers.headers ?? []).map(({ key, rawValue }) => [key, textOf(rawValue)]),
  )
}
