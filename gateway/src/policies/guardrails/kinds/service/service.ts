import { isUtf8 } from 'node:buffer'
import type { CancellationSource } from '../../../../lib/cancellation.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import { answerLimits } from '../../../../lib/json/limits.ts'
import { readJsonValue } from '../../../../lib/json/text.ts'
import { writeJsonSteps } from '../../../../lib/json/write.ts'
import { isSource, readAll } from '../../../../net/http/body.ts'
import { firstHeader } from '../../../../net/http/headers.ts'
import {
  discard,
  type OutgoingRequest,
  type Reply,
  type UpstreamConnection,
} from '../../../../net/http-client/send.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { sendToService } from '../../../../pipeline/tracing/service-calls.ts'
import { callerOf } from '../../../../upstream/credentials/caller.ts'
import type { BackendAuthConfig } from '../../../../upstream/credentials/config.ts'
import { compileAuthorize, sendAuthorized } from '../../../../upstream/credentials/credentials.ts'
import { compileDestination } from '../../../../upstream/destination.ts'
import { type CallServers, singleServer } from '../../../../upstream/endpoints.ts'
import { CheckFailure, type CheckInput } from '../../guard.ts'
import type { WebhookLimits } from '../webhook/limits.ts'
import type { ServicePolicies } from './config.ts'
import { parseEndpoint } from './endpoint.ts'
import { createGate, type Gate } from './gate.ts'
import { createSlots } from './slots.ts'

const defaultTimeoutMs = 10_000
const maxAnswerBytes = 2 * 1024 * 1024
/** Maximum characters of content serialised in one step. */
const maxInlineLength = 256 * 1024

/** A call within a check. */
export type ServiceCall = {
  readonly path: string
  readonly body: JsonObject
  readonly exchange: CheckInput['exchange']
  readonly cancellation: CancellationSource
}

/** Service that a guard calls with JSON. */
export type GuardService = {
  /** Runs the calls of one check within the limits of the service. */
  readonly within: Gate
  /**
   * Sends JSON by POST and returns the JSON of the response. Throws `CheckFailure` for other statuses than
   * 2xx and for bodies that are too large or not JSON.
   */
  post(call: ServiceCall): Promise<JsonValue>
}

export type ServiceOptions = {
  /** Kind of the guard, the start of failure reasons. */
  readonly kind: string
  readonly servers: CallServers
  /** Prefix of paths, without a slash at its end. */
  readonly prefix?: string
  readonly limits: WebhookLimits
}

/** Compiles a service with the slots and connections of webhooks. */
export function compileService(
  { kind, servers, prefix = '', limits }: ServiceOptions,
  context: CompileContext,
): GuardService {
  const { key, settings } = servers
  const slots = context.retained(`guardrails/webhook/${key}`, () => createSlots(context.memory, key))
  slots.resize(limits.maxConnections)
  const connection = limitedConnection(settings.connection, limits)
  return {
    within: createGate({ kind, slots, timeoutMs: settings.requestTimeoutMs ?? defaultTimeoutMs }),
    async post({ path, body, exchange, cancellation }) {
      const server = servers.choose()
      if (server === undefined) throw new CheckFailure(`${kind} backend has no endpoints`)
      const request: OutgoingRequest = {
        origin: server.origin,
        path: prefix + path,
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: await serialised(body, context),
        cancellation,
        connection,
        acceptsWhole: true,
        repeatable: true,
      }
      server.editRequestHeaders?.(request.headers)
      try {
        const sent = { request, caller: callerOf(exchange) }
        const send = () => sendToService(exchange.trace, request, context.send)
        const reply = await sendAuthorized(server.authorize, sent, send)
        return parsed(kind, await readReply(kind, reply, bodySize(request)))
      } catch (error) {
        if (error instanceof GatewayError) throw new CheckFailure(failureOf(kind, error), { cause: error })
        throw error
      }
    },
  }
}

export type VendorOptions = {
  readonly kind: string
  /** Address, valid for `parseEndpoint`. */
  readonly endpoint: string
  /** Configuration object of the guard, whose source determines the egress policy. */
  readonly node: object
  readonly policies: ServicePolicies | undefined
  /** Credential, by default that of the policies. */
  readonly auth?: BackendAuthConfig | undefined
  readonly limits: WebhookLimits
}

/** Compiles the service of a vendor, with TLS unless its address has the scheme `http:`. */
export function compileVendor(
  { kind, endpoint, node, policies, auth = policies?.backendAuth, limits }: VendorOptions,
  context: CompileContext,
): GuardService {
  const address = parseEndpoint(endpoint)
  if (address === undefined) throw new Error(`"${endpoint}" is not an address`)
  const { host, isTls, prefix } = address
  const connection = {
    ...policies,
    ...(isTls && { backendTLS: policies?.backendTLS ?? {} }),
    backendAuth: undefined,
  }
  const destination = compileDestination({ host, node, policies: [connection] }, context)
  // The credential that a kind implies is sent to hosts of its cloud only.
  const named = policies?.backendAuth === undefined ? undefined : node
  const use = { source: node, destination: named, connection: policies }
  const authorize = compileAuthorize(auth, context, use)
  const servers = singleServer({ ...destination, authorize })
  return compileService({ kind, servers, prefix, limits }, context)
}

/** Applies the limit to the pool as well, because a slot is released before its connection. */
export function limitedConnection(
  connection: UpstreamConnection,
  { maxConnections, keepAliveMs }: WebhookLimits,
): UpstreamConnection {
  const key = `webhook ${maxConnections} ${keepAliveMs} ${connection.key}`
  const most = maxConnections === 0 ? Number.POSITIVE_INFINITY : maxConnections
  return { ...connection, key, keepAliveMs, maxConnections: most }
}

/** Serialises a body, a large one in steps. */
async function serialised(body: JsonObject, { workQueue }: Pick<CompileContext, 'workQueue'>) {
  return lengthOf(body) > maxInlineLength
    ? workQueue.run(writeJsonSteps(body))
    : Buffer.from(JSON.stringify(body))
}

/** Characters of the texts in a value. */
function lengthOf(value: JsonValue): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((sum, member) => sum + lengthOf(member), 0)
}

function bodySize({ body }: OutgoingRequest): number {
  return body instanceof Uint8Array ? body.byteLength : 0
}

/** Reads the body of a success. Modified content may be as large as the request. */
async function readReply(kind: string, reply: Reply, sentBytes: number): Promise<Buffer> {
  const { status, headers, body } = reply
  if (status < 200 || status > 299) {
    discard(reply)
    throw new CheckFailure(`${kind} responded with status ${status}${retryHint(reply)}`)
  }
  const encoding = firstHeader(headers, 'content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    if (isSource(body)) body.cancel()
    throw new CheckFailure(`${kind} response has an unsupported content-encoding`)
  }
  return readAll(body, Math.max(maxAnswerBytes, 4 * sentBytes), 'upstream_too_large')
}

/** Wait that a throttling service asks for, in seconds or as a date. */
function retryHint({ headers }: Reply): string {
  const value = firstHeader(headers, 'retry-after')
  return value !== undefined && /^[\w ,:]{1,40}$/.test(value) ? `, retry after ${value}` : ''
}

function parsed(kind: string, bytes: Buffer): JsonValue {
  const invalid = (problem: string) => new CheckFailure(`invalid ${kind} response: ${problem}`)
  if (!isUtf8(bytes)) throw invalid('not UTF-8')
  const json = readJsonValue(bytes.toString(), answerLimits)
  if (json.kind === 'invalid') throw invalid(json.message)
  if (json.kind === 'duplicate') throw invalid('a key occurs twice')
  // The result of JSON.parse.
  return json.value as JsonValue
}

/** Failure reason of an error of a call. */
export function failureOf(kind: string, { code }: GatewayError): string {
  switch (code) {
    case 'upstream_connect':
      return `${kind} connection failed`
    case 'upstream_timeout':
      return `${kind} timed out`
    case 'upstream_too_large':
      return `${kind} response too large`
    default:
      return `${kind} call failed: ${code}`
  }
}
