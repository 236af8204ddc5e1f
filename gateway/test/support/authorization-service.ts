import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Session } from 'node:http2'
import {
  createFileRegistry,
  type DescMethodUnary,
  fromJson,
  type JsonObject,
  type Message,
  toJson,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { endAfter, type Lifetime } from './cleanup.ts'

/*
 * An authorization service as Envoy's protocol defines it, made of the public numbers of its messages and
 * another implementation of protobuf and gRPC than the gateway's.
 */

/** Fields of messages: number, type, and whether it is repeated. A type in capitals is a scalar. */
const messages: Record<string, Record<string, readonly [number, string, 'repeated'?]>> = {
  CheckRequest: { attributes: [1, 'AttributeContext'] },
  AttributeContext: {
    source: [1, 'Peer'],
    destination: [2, 'Peer'],
    request: [4, 'Request'],
    context_extensions: [10, 'map:STRING'],
    metadata_context: [11, 'Metadata'],
    tls_session: [12, 'TlsSession'],
  },
  Peer: {
    address: [1, 'Address'],
    service: [2, 'STRING'],
    principal: [4, 'STRING'],
    certificate: [5, 'STRING'],
  },
  Address: { socket_address: [1, 'SocketAddress'] },
  SocketAddress: { address: [2, 'STRING'], port_value: [3, 'UINT32'] },
  Request: { time: [1, 'Timestamp'], http: [2, 'HttpRequest'] },
  Timestamp: { seconds: [1, 'INT64'], nanos: [2, 'INT32'] },
  HttpRequest: {
    id: [1, 'STRING'],
    method: [2, 'STRING'],
    headers: [3, 'map:STRING'],
    path: [4, 'STRING'],
    host: [5, 'STRING'],
    scheme: [6, 'STRING'],
    query: [7, 'STRING'],
    fragment: [8, 'STRING'],
    size: [9, 'INT64'],
    protocol: [10, 'STRING'],
    body: [11, 'STRING'],
    raw_body: [12, 'BYTES'],
  },
  Metadata: { filter_metadata: [1, 'map:Struct'] },
  Struct: { fields: [1, 'map:Value'] },
  Value: {
    null_value: [1, 'INT32'],
    number_value: [2, 'DOUBLE'],
    string_value: [3, 'STRING'],
    bool_value: [4, 'BOOL'],
    struct_value: [5, 'Struct'],
    list_value: [6, 'ListValue'],
  },
  ListValue: { values: [1, 'Value', 'repeated'] },
  TlsSession: { sni: [1, 'STRING'] },
  CheckResponse: {
    status: [1, 'Status'],
    denied_response: [2, 'DeniedHttpResponse'],
    ok_response: [3, 'OkHttpResponse'],
    dynamic_metadata: [4, 'Struct'],
  },
  Status: { code: [1, 'INT32'], message: [2, 'STRING'] },
  HttpStatus: { code: [1, 'INT32'] },
  DeniedHttpResponse: {
    status: [1, 'HttpStatus'],
    headers: [2, 'HeaderValueOption', 'repeated'],
    body: [3, 'STRING'],
  },
  OkHttpResponse: {
    headers: [2, 'HeaderValueOption', 'repeated'],
    dynamic_metadata: [3, 'Struct'],
    headers_to_remove: [5, 'STRING', 'repeated'],
    response_headers_to_add: [6, 'HeaderValueOption', 'repeated'],
    query_parameters_to_set: [7, 'QueryParameter', 'repeated'],
    query_parameters_to_remove: [8, 'STRING', 'repeated'],
  },
  HeaderValueOption: { header: [1, 'HeaderValue'], append: [2, 'BoolValue'], append_action: [3, 'INT32'] },
  BoolValue: { value: [1, 'BOOL'] },
  HeaderValue: { key: [1, 'STRING'], value: [2, 'STRING'], raw_value: [3, 'BYTES'] },
  QueryParameter: { key: [1, 'STRING'], value: [2, 'STRING'] },
}

const packageName = 'envoy.service.auth.v3'

function describeField(
  owner: string,
  name: string,
  [number, type, repeated]: readonly [number, string, 'repeated'?],
) {
  const jsonName = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  const isMap = type.startsWith('map:')
  const ofMessage = isMap ? `${owner}.${entryName(name)}` : type
  const typed =
    isMap || type !== type.toUpperCase()
      ? { type: 'TYPE_MESSAGE', typeName: `.${packageName}.${ofMessage}` }
      : { type: `TYPE_${type}` }
  return { name, jsonName, number, label: isMap || repeated ? 'LABEL_REPEATED' : 'LABEL_OPTIONAL', ...typed }
}

function entryName(name: string): string {
  return `${name.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())}Entry`
}

function describeMessage(name: string, fields: (typeof messages)[string]) {
  const maps = Object.entries(fields).filter(([, [, type]]) => type.startsWith('map:'))
  return {
    name,
    field: Object.entries(fields).map(([field, spec]) => describeField(name, field, spec)),
    nestedType: maps.map(([field, [, type]]) => ({
      name: entryName(field),
      options: { mapEntry: true },
      field: [
        describeField(name, 'key', [1, 'STRING']),
        describeField(name, 'value', [2, type.slice('map:'.length)]),
      ],
    })),
  }
}

const registry = createFileRegistry(
  fromJson(FileDescriptorSetSchema, {
    file: [
      {
        name: 'authorization.proto',
        package: packageName,
        syntax: 'proto3',
        messageType: Object.entries(messages).map(([name, fields]) => describeMessage(name, fields)),
        service: [
          {
            name: 'Authorization',
            method: [
              {
                name: 'Check',
                inputType: `.${packageName}.CheckRequest`,
                outputType: `.${packageName}.CheckResponse`,
              },
            ],
          },
        ],
      },
    ],
  }),
)

function known<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('the description of the service lacks a part')
  return found
}

const method = known(registry.getService(`${packageName}.Authorization`)).methods[0] as DescMethodUnary
const requestSchema = known(registry.getMessage(`${packageName}.CheckRequest`))
const responseSchema = known(registry.getMessage(`${packageName}.CheckResponse`))

/** A check as JSON of its message. */
export type SeenCheck = {
  source?: { address: { socketAddress: { address: string; portValue?: number } }; principal?: string }
  destination?: { address: { socketAddress: { address: string; portValue?: number } } }
  request: { time?: { seconds: string }; http: SeenHttp }
  contextExtensions?: Record<string, string>
  metadataContext?: { filterMetadata?: Record<string, unknown> }
  tlsSession?: { sni?: string }
}

export type SeenHttp = {
  id?: string
  method: string
  path: string
  host: string
  scheme: string
  size?: string
  protocol: string
  body?: string
  rawBody?: string
  headers: Record<string, string>
}

export type AuthorizationService = {
  readonly port: number
  readonly host: string
  readonly seen: SeenCheck[]
  /** Connections it has been asked through. */
  connections: number
  /** Returns the response to a check; may be replaced while it runs. */
  decide(check: SeenCheck): JsonObject | Promise<JsonObject>
  /** Responses in bytes instead of decisions. */
  raw: Buffer | undefined
  /** Closes every connection after its pending checks (GOAWAY). */
  retire(): void
  stop(): Promise<void>
  start(): Promise<void>
}

/** Permits every request. */
export const permitted: JsonObject = { status: { code: 0 } }
/** Refuses with PERMISSION_DENIED. */
export const forbidden: JsonObject = { status: { code: 7 } }

/** A field of a response: `append` as in the message. */
export function setHeader(key: string, value: string, more: JsonObject = {}): JsonObject {
  return { header: { key, value }, ...more }
}

/** Plain JSON as a Struct of the wire. */
export function structOf(value: Record<string, unknown>): JsonObject {
  return {
    fields: Object.fromEntries(Object.entries(value).map(([name, member]) => [name, asValue(member)])),
  }
}

function asValue(value: unknown): JsonObject {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'number') return { numberValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (Array.isArray(value)) return { listValue: { values: value.map(asValue) } }
  if (typeof value === 'object' && value !== null) return { structValue: structOf({ ...value }) }
  return { nullValue: 0 }
}

/** Starts the service on a free port. */
export async function startAuthorizationService(
  decide: AuthorizationService['decide'] = () => permitted,
  lifetime: Lifetime = 'test',
): Promise<AuthorizationService> {
  const sessions = new Set<ServerHttp2Session>()
  const seen: SeenCheck[] = []
  let server = listenable()
  let port = 0
  const state: AuthorizationService = {
    get port() {
      return port
    },
    get host() {
      return `127.0.0.1:${port}`
    },
    seen,
    connections: 0,
    decide,
    raw: undefined,
    retire() {
      for (const session of sessions) session.close()
    },
    start,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const session of sessions) session.destroy()
      await closed
      server = listenable()
    },
  }

  async function answer(request: Message): Promise<Message> {
    const { attributes } = toJson(requestSchema, request) as { attributes: SeenCheck }
    seen.push(attributes)
    return fromJson(responseSchema, await state.decide(attributes))
  }

  function listenable() {
    const handler = connectNodeAdapter({ routes: (router) => router.rpc(method, answer) })
    const created = createHttp2Server((request, response) => {
      if (state.raw === undefined) {
        handler(request, response)
        return
      }
      request.resume()
      response.writeHead(200, { 'content-type': 'application/grpc' })
      response.addTrailers({ 'grpc-status': '0' })
      response.end(framed(state.raw))
    })
    created.on('session', (session) => {
      state.connections += 1
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
  return state
}

function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([head, message])
}

/** A failure of the call with status UNAVAILABLE. */
export function unavailable(): ConnectError {
  return new ConnectError('not now', Code.Unavailable)
}

export type HttpAuthorizer = {
  readonly host: string
  readonly seen: { method: string; path: string; headers: IncomingMessage['headers']; body: string }[]
  connections: number
}

/** Starts an HTTP server that decides by its responses. */
export async function startHttpAuthorizer(
  respond: (request: HttpAuthorizer['seen'][number], response: ServerResponse) => void,
): Promise<HttpAuthorizer> {
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method: verb = '', url: path = '', headers } = request
      const call = { method: verb, path, headers, body: Buffer.concat(chunks).toString() }
      authorizer.seen.push(call)
      respond(call, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const authorizer: HttpAuthorizer = { host: `127.0.0.1:${address.port}`, seen: [], connections: 0 }
  server.on('connection', () => {
    authorizer.connections += 1
  })
  endAfter('test', () => {
    server.closeAllConnections()
    server.close()
  })
  return authorizer
}
