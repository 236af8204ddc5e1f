import { GatewayError } from '../lib/gateway-error.ts'
import type { JsonObject } from '../lib/json/json.ts'
import { parseRequestTarget } from '../lib/request-target.ts'
import type { WorkQueue } from '../lib/scheduling/work-queue.ts'
import { isSource } from '../net/http/body.ts'
import type { Reply } from '../net/http-client/send.ts'
import { maxBodyBytes, readBody } from '../resources/api/read-body.ts'
import { json, notAllowed, refuse } from '../resources/api/replies.ts'
import type { ApiRequest } from '../resources/api/request.ts'
import { type Refusal, refusal } from '../resources/change/change.ts'
import type { Log } from '../telemetry/log.ts'
import type { ApiHandler } from './admin.ts'

/** Path of the admin API with its operations. */
export type AdminEndpoint = {
  /**
   * Exact path. A segment `{name}` is a parameter: any text, slashes escaped. A last segment `{name...}` is
   * the rest of the path, not decoded, without its first slash.
   */
  readonly path: string
  readonly methods: { readonly [method in AdminMethod]?: AdminOperation }
}

/** HEAD is served by GET. */
type AdminMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

export type AdminOperation = {
  /** Accepted query parameters; default none. Others are refused. `any` leaves the query to the operation. */
  readonly query?: readonly string[] | 'any'
  /** The operation reads or cancels the body of the request, which may outlast the response head. */
  readonly ownsBody?: true
  /** Executes an authorized request. Unexpected errors become 500. */
  respond(call: AdminCall): Promise<AdminResult>
}

export type AdminCall = {
  readonly request: ApiRequest
  /** Parameters of the path, decoded. */
  readonly parameters: ReadonlyMap<string, string>
  readonly query: ReadonlyMap<string, string>
  /** Reads the body: a JSON object of at most 2 MiB without duplicate keys. */
  readJson(): Promise<{ readonly kind: 'read'; readonly value: JsonObject } | Refusal>
}

export type AdminResult =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'reply'; readonly reply: Reply }
  | Refusal

export type AdminApiOptions = {
  readonly endpoints: readonly AdminEndpoint[]
  /** Handles requests for other paths. */
  readonly next: ApiHandler
  readonly workQueue: WorkQueue
  readonly log: Log
}

/**
 * Creates the admin API: endpoints with paths of their own, then the config resource API. Method, query and
 * body are checked here. Requests are not authenticated here: the caller authorizes the client.
 */
export function createAdminApi({ endpoints, next, workQueue, log }: AdminApiOptions): ApiHandler {
  const routes = endpoints.map((endpoint) => ({ endpoint, segments: endpoint.path.split('/') }))
  return async (request) => {
    const target = parseRequestTarget(request.target)
    const sent = target?.path.split('/') ?? []
    for (const { endpoint, segments } of routes) {
      if (!matches(segments, sent)) continue
      const operation = operationOf(endpoint, request.method)
      try {
        const { query = '' } = target ?? {}
        return await respond(endpoint, operation, { request, segments, sent, query, workQueue })
      } catch (error) {
        return refuse(refusalOf(error, endpoint, log), request)
      } finally {
        // An unread body would block the connection.
        if (isSource(request.body) && operation?.ownsBody !== true) request.body.cancel()
      }
    }
    return await next(request)
  }
}

function matches(segments: readonly string[], sent: readonly string[]): boolean {
  const takesRest = isRest(segments.at(-1) ?? '')
  if (takesRest ? segments.length > sent.length : segments.length !== sent.length) return false
  return segments.every((segment, index) => isParameter(segment) || segment === sent[index])
}

function isRest(segment: string): boolean {
  return segment.endsWith('...}')
}

function isParameter(segment: string): boolean {
  return segment.startsWith('{')
}

type Match = {
  readonly request: ApiRequest
  readonly segments: readonly string[]
  readonly sent: readonly string[]
  readonly query: string
  readonly workQueue: WorkQueue
}

async function respond(
  endpoint: AdminEndpoint,
  operation: AdminOperation | undefined,
  match: Match,
): Promise<Reply> {
  const { request, workQueue } = match
  if (operation === undefined) return notAllowed(request.method, allowedMethods(endpoint), request)
  const parameters = readParameters(match)
  if (parameters.kind === 'refused') return refuse(parameters, request)
  const query = readQuery(match.query, operation.query ?? [])
  if (query.kind === 'refused') return refuse(query, request)
  const result = await operation.respond({
    request,
    parameters: parameters.values,
    query: query.values,
    readJson: () => readBody(request, workQueue),
  })
  switch (result.kind) {
    case 'json':
      return json(200, result.value)
    case 'reply':
      return result.reply
    case 'refused':
      return refuse(result, request)
  }
}

function operationOf({ methods }: AdminEndpoint, method: string): AdminOperation | undefined {
  const name = method === 'HEAD' ? 'GET' : method
  return Object.hasOwn(methods, name) ? methods[name as AdminMethod] : undefined
}

function allowedMethods({ methods }: AdminEndpoint): string {
  return Object.keys(methods)
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')
}

type Values = { readonly kind: 'values'; readonly values: ReadonlyMap<string, string> }

function readParameters({ segments, sent }: Match): Values | Refusal {
  const values = new Map<string, string>()
  for (const [index, segment] of segments.entries()) {
    if (!isParameter(segment)) continue
    if (isRest(segment)) {
      values.set(segment.slice(1, -4), sent.slice(index).join('/'))
      continue
    }
    try {
      values.set(segment.slice(1, -1), decodeURIComponent(sent[index] ?? ''))
    } catch {
      return refusal(400, 'the address contains escapes that are not valid UTF-8')
    }
  }
  return { kind: 'values', values }
}

function readQuery(text: string, known: readonly string[] | 'any'): Values | Refusal {
  const values = new Map<string, string>()
  if (known === 'any') return { kind: 'values', values }
  for (const [name, value] of new URLSearchParams(text)) {
    const shown = name.slice(0, 100)
    if (!known.includes(name)) {
      const names = known.length === 0 ? 'there are none here' : `known are ${known.join(', ')}`
      return refusal(400, `unknown query parameter ${shown}: ${names}`)
    }
    if (values.has(name)) return refusal(400, `${shown} is in the query more than once`)
    values.set(name, value)
  }
  return { kind: 'values', values }
}

function refusalOf(error: unknown, { path }: AdminEndpoint, log: Log): Refusal {
  if (error instanceof GatewayError && error.code === 'request_too_large')
    return refusal(413, `the body is larger than ${maxBodyBytes} bytes`)
  // The client closed the connection or stopped sending: not an error of this process.
  if (error instanceof GatewayError && error.code === 'request_aborted')
    return refusal(400, 'the body is not complete')
  log.error({ err: error, path }, 'admin API request failed')
  return refusal(500, 'internal error')
}
