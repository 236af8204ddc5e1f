import type { ListeningConfig } from '../../config/listener-addresses.ts'
import { createCancellation } from '../../lib/cancellation.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type Body, type BodySource, isSource, withTransform } from '../../net/http/body.ts'
import { discard, type Reply, type Send } from '../../net/http-client/send.ts'
import { errorResponse, type Json, type OpenApiPart } from '../../resources/api/openapi-part.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'
import type { AdminCall, AdminEndpoint, AdminOperation, AdminResult } from '../api.ts'
import { replyHeaders } from './reply-headers.ts'
import { forwardedHeaders } from './request-headers.ts'
import { forwardTarget } from './target.ts'

export type ForwardOptions = {
  /** The active configuration; undefined before the first. */
  readonly config: () => ListeningConfig | undefined
  readonly send: Send
  readonly limits?: ForwardLimits
}

export type ForwardLimits = {
  readonly maxBodyBytes: number
  /** Requests in progress. */
  readonly maxForwards: number
  /** Longest duration of a request with its response. */
  readonly maxDurationMs: number
  /** Longest wait for the response head. */
  readonly firstByteTimeoutMs: number
  /** Longest pause in the response. */
  readonly idleTimeoutMs: number
}

const defaultLimits: ForwardLimits = {
  maxBodyBytes: 32 * 1024 * 1024,
  maxForwards: 100,
  maxDurationMs: 3_600_000,
  firstByteTimeoutMs: 660_000,
  idleTimeoutMs: 660_000,
}

/** Start of the paths of forwarded requests. */
export const forwardPrefix = '/api/forward/'
const paths = ['/api/forward/{gateway}', '/api/forward/{gateway}/{path...}']
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
/** Pages of other origins cannot send it without a preflight, which is refused. */
const consoleHeader = 'x-tollgate-console'

/**
 * Endpoints that send a request to a listener of this process, as a client does, and stream the response. The
 * policies of the gateway decide on it. No credential of the console is forwarded, and the response is inert
 * in a browser.
 */
export function forwardEndpoints(options: ForwardOptions): AdminEndpoint[] {
  const { limits = defaultLimits } = options
  const use = { count: 0 }

  async function respond(call: AdminCall): Promise<AdminResult> {
    const { body } = call.request
    const planned = plan(call, options)
    if (planned.kind === 'refused' || use.count >= limits.maxForwards) {
      if (isSource(body)) body.cancel()
      if (planned.kind === 'refused') return planned
      return refusal(503, `${limits.maxForwards} requests are being forwarded: try again later`)
    }
    use.count += 1
    const release = () => {
      use.count -= 1
    }
    return await forward(call, planned, { ...options, limits, release })
  }

  const operation: AdminOperation = { query: 'any', ownsBody: true, respond }
  const operations = Object.fromEntries(methods.map((method) => [method, operation]))
  return paths.map((path) => ({ path, methods: operations }))
}

type Planned = { readonly kind: 'planned' } & Pick<
  Parameters<Send>[0],
  'origin' | 'path' | 'headers' | 'connection'
>

function plan({ request, parameters }: AdminCall, { config, limits = defaultLimits }: ForwardOptions) {
  if (request.headers[consoleHeader] !== '1') return refusal(403, `requires the header ${consoleHeader}: 1`)
  const sent = forwardedHeaders(request.headers)
  if (sent.kind === 'refused') return sent
  if (Number(request.headers['content-length'] ?? 0) > limits.maxBodyBytes) return tooLarge(limits)
  const active = config()
  if (active === undefined) return refusal(503, 'no configuration is active')
  const target = forwardTarget(active, parameters.get('gateway') ?? '', sent.host)
  if (target.kind === 'refused') return target
  const { origin, host, connection } = target
  const path = forwardedPath(request.target, parameters.get('path'))
  const planned: Planned = { kind: 'planned', origin, path, connection, headers: { ...sent.headers, host } }
  return planned
}

/** The normalised path of the request behind the gateway, with its trailing slash and query. */
function forwardedPath(target: string, rest = ''): string {
  const question = target.indexOf('?')
  const hasSlash = rest !== '' && target.slice(0, question < 0 ? undefined : question).endsWith('/')
  return `/${rest}${hasSlash ? '/' : ''}${question < 0 ? '' : target.slice(question)}`
}

function tooLarge({ maxBodyBytes }: ForwardLimits): Refusal {
  return refusal(413, `the body is larger than ${maxBodyBytes} bytes`)
}

type Forwarding = ForwardOptions & { readonly limits: ForwardLimits; release(): void }

async function forward(
  { request }: AdminCall,
  { origin, path, headers, connection }: Planned,
  { send, limits, release }: Forwarding,
): Promise<AdminResult> {
  const cancellation = createCancellation()
  const end = once(() => {
    clearTimeout(timer)
    release()
  })
  const timer = setTimeout(() => {
    cancellation.cancel()
    end()
  }, limits.maxDurationMs)
  timer.unref()
  request.cancellation?.onCancel(cancellation.cancel)
  const upload = limited(request.body, limits.maxBodyBytes)
  try {
    const reply = await send({
      ...{ origin, path, headers, connection, cancellation },
      method: request.method,
      body: upload.body,
      firstByteTimeoutMs: limits.firstByteTimeoutMs,
      idleTimeoutMs: limits.idleTimeoutMs,
    })
    return { kind: 'reply', reply: inertReply(reply, end) }
  } catch (error) {
    end()
    if (isSource(request.body)) request.body.cancel()
    if (upload.isTooLarge()) return tooLarge(limits)
    if (error instanceof GatewayError) return refusalOf(error)
    throw error
  }
}

function refusalOf({ code, message }: GatewayError): Refusal {
  if (code === 'upstream_timeout') return refusal(504, 'the gateway did not respond in time')
  if (code === 'request_aborted') return refusal(400, 'the request was aborted')
  return refusal(502, `the gateway could not be reached: ${message}`)
}

/** The response without active headers. `end` is called at the end of its body. */
function inertReply(reply: Reply, end: () => void): Reply {
  const { status, headers, body, tunnel } = reply
  if (tunnel !== undefined) discard(reply)
  if (tunnel !== undefined || !isSource(body)) end()
  const inert = { status, headers: replyHeaders(headers) }
  if (tunnel !== undefined) return { ...inert, body: undefined }
  return { ...inert, body: isSource(body) ? observed(body, end) : body }
}

function observed(body: BodySource, end: () => void): BodySource {
  const source = withTransform(body, (sink) => ({
    write: (chunk) => sink.write(chunk),
    end(trailers) {
      end()
      sink.end(trailers)
    },
    fail(error) {
      end()
      sink.fail(error)
    },
  }))
  return {
    ...source,
    cancel() {
      end()
      source.cancel()
    },
  }
}

/** The body, which fails beyond a number of bytes. */
function limited(body: Body, maxBytes: number): { body: Body; isTooLarge(): boolean } {
  if (!isSource(body)) {
    return { body, isTooLarge: () => false }
  }
  let size = 0
  const source = withTransform(body, (sink) => ({
    ...sink,
    write(chunk) {
      if (size > maxBytes) return true
      size += chunk.byteLength
      if (size <= maxBytes) return sink.write(chunk)
      body.cancel()
      sink.fail(new GatewayError('request_too_large', `the body is larger than ${maxBytes} bytes`))
      return true
    },
  }))
  return { body: source, isTooLarge: () => size > maxBytes }
}

function once(action: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    action()
  }
}

const operation: Json = {
  summary: 'Sends a request to a listener of this process, as a client does, and streams the response.',
  description:
    'Request headers `x-forward-NAME` are sent as `NAME`, `x-forward-host` as `Host`, further `accept` and `content-type`; no others. The response has its status and headers, without those that browsers act on; `location` and `www-authenticate` have the prefix `x-forward-`. `x-tollgate-forwarded: 1` marks responses of the listener.',
  responses: { '200': { description: 'Response of the listener, with its status.' }, default: errorResponse },
}

const parameter = (name: string, description: string): Json => ({
  ...{ name, in: 'path', required: true, description, schema: { type: 'string' } },
})

export const forwardOpenApi: OpenApiPart = {
  paths: {
    '/api/forward/{gateway}/{path}': {
      parameters: [
        parameter('gateway', 'Name of a gateway; `llm` or `mcp` for the own port of a section.'),
        parameter('path', 'Rest of the path, with slashes.'),
        {
          name: consoleHeader,
          in: 'header',
          required: true,
          description: 'Prevents requests of pages of other origins.',
          schema: { type: 'string', enum: ['1'] },
        },
      ],
      ...Object.fromEntries(methods.map((method) => [method.toLowerCase(), operation])),
    },
  },
}
