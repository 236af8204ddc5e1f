import {
  createSecureServer,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2'
import { createServer as createTcpServer } from 'node:net'
import {
  createFileRegistry,
  type DescMethod,
  type DescMethodUnary,
  fromJson,
  type JsonObject,
  type Message,
  toJson,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import type { Certificate } from './certificates.ts'
import { endAfter, type Lifetime } from './cleanup.ts'

/*
 * A rate limit service as Envoy's protocol defines it, made of the descriptions of its messages and another
 * gRPC implementation than the gateway's.
 */

export type ServiceMode =
  /** Fixed windows aligned to the clock; counts by descriptor; `statuses`, no headers. */
  | 'envoy'
  /** Counts the top-level number only, no number as 1, refused calls not at all; headers, no `statuses`. */
  | 'limitador'
  | 'exhausted'
  | 'hang'
  /** Every second call fails. */
  | 'flap'
  | 'garbage'

/** A call as JSON of its message. */
export type SeenCall = {
  domain?: string
  descriptors: { entries: { key: string; value: string }[]; hitsAddend?: string; limit?: JsonObject }[]
  hitsAddend?: number
}

export type RateLimitService = {
  port: number
  host: string
  /** May be changed while it runs. */
  mode: ServiceMode
  /** Requests per hour by `key=value/key=value`. */
  limits: Record<string, number>
  /** Added to every answer. */
  extra: JsonObject
  readonly seen: SeenCall[]
  /** Connections it has been asked through. */
  connections: number
  /** Counts by `key=value/key=value`. */
  readonly counts: Map<string, number>
  /** Closes every connection in order, after its pending requests are answered. */
  retire(): void
  /** Stops listening and ends every connection. */
  stop(): Promise<void>
  /** Listens again on the same port. */
  start(): Promise<void>
}

const field = (name: string, number: number, type: string, more: JsonObject = {}) => ({
  name,
  jsonName: name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
  number,
  type: `TYPE_${type}`,
  label: 'LABEL_OPTIONAL',
  ...more,
})
const repeated = { label: 'LABEL_REPEATED' }
const ofType = (typeName: string) => ({ typeName })
const packageName = 'envoy.service.ratelimit.v3'
const units = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK']
const codes = ['UNKNOWN', 'OK', 'OVER_LIMIT']
const enumOf = (name: string, values: string[]) => ({
  name,
  value: values.map((value, number) => ({ name: `${name.toUpperCase()}_${value}`, number })),
})

const descriptors = fromJson(FileDescriptorSetSchema, {
  file: [
    {
      name: 'google/protobuf/wrappers.proto',
      package: 'google.protobuf',
      syntax: 'proto3',
      messageType: [{ name: 'UInt64Value', field: [field('value', 1, 'UINT64')] }],
    },
    {
      name: 'google/protobuf/duration.proto',
      package: 'google.protobuf',
      syntax: 'proto3',
      messageType: [{ name: 'Duration', field: [field('seconds', 1, 'INT64'), field('nanos', 2, 'INT32')] }],
    },
    {
      name: 'rls.proto',
      package: packageName,
      syntax: 'proto3',
      dependency: ['google/protobuf/wrappers.proto', 'google/protobuf/duration.proto'],
      enumType: [enumOf('Unit', units), enumOf('Code', codes)],
      messageType: [
        { name: 'Entry', field: [field('key', 1, 'STRING'), field('value', 2, 'STRING')] },
        {
          name: 'Override',
          field: [
            field('requests_per_unit', 1, 'UINT32'),
            field('unit', 2, 'ENUM', ofType(`.${packageName}.Unit`)),
          ],
        },
        {
          name: 'Descriptor',
          field: [
            field('entries', 1, 'MESSAGE', { ...ofType(`.${packageName}.Entry`), ...repeated }),
            field('limit', 2, 'MESSAGE', ofType(`.${packageName}.Override`)),
            field('hits_addend', 3, 'MESSAGE', ofType('.google.protobuf.UInt64Value')),
          ],
        },
        {
          name: 'RateLimitRequest',
          field: [
            field('domain', 1, 'STRING'),
            field('descriptors', 2, 'MESSAGE', { ...ofType(`.${packageName}.Descriptor`), ...repeated }),
            field('hits_addend', 3, 'UINT32'),
          ],
        },
        {
          name: 'HeaderValue',
          field: [field('key', 1, 'STRING'), field('value', 2, 'STRING'), field('raw_value', 3, 'BYTES')],
        },
        {
          name: 'Status',
          field: [
            field('code', 1, 'ENUM', ofType(`.${packageName}.Code`)),
            field('current_limit', 2, 'MESSAGE', ofType(`.${packageName}.Override`)),
            field('limit_remaining', 3, 'UINT32'),
            field('duration_until_reset', 4, 'MESSAGE', ofType('.google.protobuf.Duration')),
          ],
        },
        {
          name: 'RateLimitResponse',
          field: [
            field('overall_code', 1, 'ENUM', ofType(`.${packageName}.Code`)),
            field('statuses', 2, 'MESSAGE', { ...ofType(`.${packageName}.Status`), ...repeated }),
            field('response_headers_to_add', 3, 'MESSAGE', {
              ...ofType(`.${packageName}.HeaderValue`),
              ...repeated,
            }),
            field('request_headers_to_add', 4, 'MESSAGE', {
              ...ofType(`.${packageName}.HeaderValue`),
              ...repeated,
            }),
            field('raw_body', 5, 'BYTES'),
          ],
        },
      ],
      service: [
        {
          name: 'RateLimitService',
          method: [
            {
              name: 'ShouldRateLimit',
              inputType: `.${packageName}.RateLimitRequest`,
              outputType: `.${packageName}.RateLimitResponse`,
            },
          ],
        },
      ],
    },
    {
      name: 'kuadrantrls.proto',
      package: 'kuadrant.service.ratelimit.v1',
      syntax: 'proto3',
      dependency: ['rls.proto'],
      service: [
        {
          name: 'RateLimitService',
          method: ['CheckRateLimit', 'Report'].map((name) => ({
            name,
            inputType: `.${packageName}.RateLimitRequest`,
            outputType: `.${packageName}.RateLimitResponse`,
          })),
        },
      ],
    },
  ],
})

const registry = createFileRegistry(descriptors)

function known<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('the description of the service lacks a part')
  return found
}

function unary(found: DescMethod): DescMethodUnary {
  if (isUnary(found)) return found
  throw new Error('the method takes one message')
}

function isUnary(found: DescMethod): found is DescMethodUnary {
  return found.methodKind === 'unary'
}

const service = known(registry.getService(`${packageName}.RateLimitService`))
const method = unary(known(service.methods[0]))
const own = known(registry.getService('kuadrant.service.ratelimit.v1.RateLimitService'))
const [checkMethod, reportMethod] = [0, 1].map((index) => unary(known(own.methods[index])))
const requestSchema = known(registry.getMessage(`${packageName}.RateLimitRequest`))
const responseSchema = known(registry.getMessage(`${packageName}.RateLimitResponse`))

/** Starts the service on a free port. */
export async function startRateLimitService(
  options: {
    mode?: ServiceMode
    limits?: Record<string, number>
    tls?: Certificate
    lifetime?: Lifetime
  } = {},
): Promise<RateLimitService> {
  const state: RateLimitService = {
    port: 0,
    host: '',
    mode: options.mode ?? 'envoy',
    limits: options.limits ?? {},
    extra: {},
    seen: [],
    connections: 0,
    counts: new Map(),
    retire() {
      for (const session of sessions) session.close()
    },
    stop,
    start,
  }
  const sessions = new Set<{ destroy(): void; close(): void }>()
  let server = listenable()

  function listenable() {
    const handler = connectNodeAdapter({
      routes(router) {
        router.rpc(method, (request) => answer(request, state))
        router.rpc(known(checkMethod), (request) => reply(checkOnly(noted(request, state), state)))
        router.rpc(known(reportMethod), (request) => reply(countOnly(noted(request, state), state)))
      },
    })
    const onRequest = (request: Http2ServerRequest, response: Http2ServerResponse) =>
      state.mode === 'garbage' ? answerGarbage(request, response) : handler(request, response)
    const created = options.tls ? createSecureServer(options.tls, onRequest) : createServer(onRequest)
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
      server.listen(state.port, '127.0.0.1', resolve)
    })
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    state.port = address.port
    state.host = `127.0.0.1:${address.port}`
  }

  async function stop() {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const session of sessions) session.destroy()
    await closed
    server = listenable()
  }

  await start()
  endAfter(options.lifetime ?? 'test', () => {
    server.close()
    for (const session of sessions) session.destroy()
  })
  return state
}

function noted(request: Message, { seen }: RateLimitService): SeenCall {
  const call = readCall(toJson(requestSchema, request))
  seen.push(call)
  return call
}

/** Limitador's `CheckRateLimit`: whether one more fits, independent of the number sent. */
function checkOnly({ descriptors: asked }: SeenCall, { limits, counts }: RateLimitService): JsonObject {
  const over = asked.map(nameOf).some((name) => (counts.get(name) ?? 0) + 1 > (limits[name] ?? Infinity))
  return { overallCode: over ? 'CODE_OVER_LIMIT' : 'CODE_OK' }
}

/** Limitador's `Report`: counts the top-level number for every descriptor, also over the limit. */
function countOnly({ descriptors: asked, hitsAddend }: SeenCall, { counts }: RateLimitService): JsonObject {
  for (const name of asked.map(nameOf)) counts.set(name, (counts.get(name) ?? 0) + (hitsAddend || 1))
  return { overallCode: 'CODE_OK' }
}

async function answer(request: Message, state: RateLimitService): Promise<Message> {
  const call = noted(request, state)
  switch (state.mode) {
    case 'hang':
      return new Promise(() => {})
    case 'flap':
      if (state.seen.length % 2 === 1) throw new ConnectError('not now', Code.Unavailable)
      return reply({ overallCode: 'CODE_OK', ...state.extra })
    case 'exhausted':
      throw new ConnectError('quota exhausted', Code.ResourceExhausted)
    case 'limitador':
      return reply({ ...asLimitador(call, state), ...state.extra })
    default:
      return reply({ ...asEnvoy(call, state), ...state.extra })
  }
}

function reply(json: JsonObject): Message {
  return fromJson(responseSchema, json)
}

/** Wire guard: a message in the form of the descriptions above. */
function readCall(json: unknown): SeenCall {
  return { descriptors: [], ...(json as Partial<SeenCall>) }
}

function nameOf({ entries }: SeenCall['descriptors'][number]): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join('/')
}

const hourSeconds = 3_600

function asEnvoy(
  { descriptors: asked, hitsAddend }: SeenCall,
  { limits, counts }: RateLimitService,
): JsonObject {
  const resetSeconds = hourSeconds - (Math.floor(Date.now() / 1000) % hourSeconds)
  const statuses = asked.map((descriptor) => {
    const name = nameOf(descriptor)
    const limit = limits[name]
    const hits = descriptor.hitsAddend === undefined ? hitsAddend || 1 : Number(descriptor.hitsAddend)
    const count = (counts.get(name) ?? 0) + hits
    counts.set(name, count)
    if (limit === undefined) return { code: 'CODE_OK' }
    return {
      code: count > limit ? 'CODE_OVER_LIMIT' : 'CODE_OK',
      currentLimit: { requestsPerUnit: limit, unit: 'UNIT_HOUR' },
      limitRemaining: Math.max(0, limit - count),
      durationUntilReset: `${resetSeconds}s`,
    }
  })
  const over = statuses.some(({ code }) => code === 'CODE_OVER_LIMIT')
  return { overallCode: over ? 'CODE_OVER_LIMIT' : 'CODE_OK', statuses }
}

function asLimitador(
  { domain = '', descriptors: asked, hitsAddend }: SeenCall,
  { limits, counts }: RateLimitService,
): JsonObject {
  if (domain === '') return { overallCode: 'CODE_UNKNOWN' }
  const hits = hitsAddend || 1
  const names = asked.map(nameOf)
  const limited = names.filter((name) => limits[name] !== undefined)
  const left = (name: string) => (limits[name] ?? 0) - (counts.get(name) ?? 0)
  const over = limited.some((name) => left(name) < hits)
  if (!over) for (const name of names) counts.set(name, (counts.get(name) ?? 0) + hits)
  const closest = limited.toSorted((a, b) => left(a) - left(b))[0]
  const headers =
    closest === undefined
      ? []
      : [
          { key: 'X-RateLimit-Limit', value: `${limits[closest]}, ${limits[closest]};w=3600` },
          { key: 'X-RateLimit-Remaining', value: String(Math.max(0, left(closest))) },
          { key: 'X-RateLimit-Reset', value: '1800' },
        ]
  return { overallCode: over ? 'CODE_OVER_LIMIT' : 'CODE_OK', responseHeadersToAdd: headers }
}

/** A message that is none: a field that promises more bytes than there are. */
function answerGarbage(request: Http2ServerRequest, response: Http2ServerResponse): void {
  request.resume()
  response.writeHead(200, { 'content-type': 'application/grpc' })
  response.addTrailers({ 'grpc-status': '0' })
  response.end(Buffer.from([0, 0, 0, 0, 2, 0x12, 0x7f]))
}

/** A port that accepts connections and never responds. */
export async function startSilentServer(): Promise<{ host: string }> {
  const server = createTcpServer((socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endAfter('test', () => {
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { host: `127.0.0.1:${address.port}` }
}
