import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedCel } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import { evaluateToWrite } from '../../cel/results.ts'
import { type CancellationSource, createCancellation } from '../../lib/cancellation.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { isToken } from '../../lib/http-token.ts'
import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import { isSource, readAll } from '../../net/http/body.ts'
import { isHeaderValue } from '../../net/http/header-edits.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { OutgoingRequest, Reply } from '../../net/http-client/send.ts'
import { isHost } from '../../pipeline/client-address.ts'
import { sendToService } from '../../pipeline/tracing/service-calls.ts'
import { callerOf } from '../../upstream/credentials/caller.ts'
import { compileDestination, type UpstreamContext } from '../../upstream/destination.ts'
import { type CallServers, compileNamedServers, singleServer } from '../../upstream/endpoints.ts'
import { hideCredentials } from '../../upstream/hidden-credential/hidden-credential.ts'
import type { Answer } from './cache.ts'
import { defaultTimeoutMs, type ExtAuthzConfig, type HttpConfig, responseVariables } from './config.ts'
import { checkedEdits, type Decision, deniedReply, type FieldEdit, InvalidDecision } from './decision.ts'
import type { CompiledService } from './grpc-check.ts'
import { hostOf, methodOf, pathAndQuery, type RequestView, viewedHeaders } from './request-view.ts'
import { RequestFailure, ServiceFailure } from './service.ts'

/** Size limit of responses, as with gRPC. */
const maxReplyBytes = 64 * 1024

type NamedProgram = readonly [name: string, program: CelProgram]

/** Compiled parts of the check. */
type HttpCheck = {
  readonly path: CelProgram | undefined
  readonly redirect: CelProgram | undefined
  readonly body: CelProgram | undefined
  readonly included: readonly string[]
  readonly added: readonly NamedProgram[]
  readonly replyHeaders: readonly string[]
  readonly metadata: readonly NamedProgram[]
}

/** Compiles checks over HTTP. `variables` are the CEL variables of request heads. */
export function compileHttpCheck(
  config: ExtAuthzConfig,
  context: UpstreamContext,
  variables: ReadonlySet<string>,
): CompiledService {
  const servers = serversOf(config, context)
  const check = compileParts(config.protocol?.http ?? {}, config.includeRequestHeaders, variables)
  return {
    key: servers.key,
    timeoutMs: servers.settings.requestTimeoutMs ?? defaultTimeoutMs,
    async ask(view, deadlineMs) {
      const cancellation = createCancellation()
      const timer = setTimeout(() => cancellation.cancel(), deadlineMs)
      try {
        const { request, credentials } = await requestTo(servers, check, { view, cancellation })
        const reply = await sendToService(view.exchange.trace, request, context.send)
        return await answerOf(check, view, { ...reply, credentials })
      } catch (error) {
        throw failureOf(error, cancellation)
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

function serversOf(config: ExtAuthzConfig, context: UpstreamContext): CallServers {
  const { host, policies } = config
  if (host === undefined)
    return compileNamedServers(config.backend, context.backends ?? [], context, policies)
  return singleServer(compileDestination({ host, node: config, policies: [policies] }, context))
}

function compileParts(
  http: HttpConfig,
  included: readonly string[] | undefined,
  variables: ReadonlySet<string>,
): HttpCheck {
  const compile = (source: string) => compileCheckedCel(source, variables)
  const overReply = responseVariables(variables)
  return {
    path: http.path === undefined ? undefined : compile(http.path),
    redirect: http.redirect === undefined ? undefined : compile(http.redirect),
    body: http.body === undefined ? undefined : compile(http.body),
    included: (included ?? ['authorization']).map((name) => name.toLowerCase()),
    added: Object.entries(http.addRequestHeaders ?? {}).map(([name, source]) => {
      const lower = name.toLowerCase()
      return [lower === 'host' ? ':authority' : lower, compile(source)]
    }),
    replyHeaders: (http.includeResponseHeaders ?? []).map((name) => name.toLowerCase()),
    metadata: Object.entries(http.metadata ?? {}).map(([name, source]) => [
      name,
      compileCheckedCel(source, overReply),
    ]),
  }
}

type CheckCall = { readonly view: RequestView; readonly cancellation: CancellationSource }

async function requestTo(
  servers: CallServers,
  check: HttpCheck,
  { view, cancellation }: CheckCall,
): Promise<{ request: OutgoingRequest; credentials: readonly string[] | undefined }> {
  const server = servers.choose()
  if (server === undefined) throw new ServiceFailure('the backend has no endpoints', { isUnanswered: true })
  const headers: Headers = {}
  includeHeaders(headers, check.included, view)
  if (check.body === undefined && view.body !== undefined)
    headers['x-envoy-auth-partial-body'] = String(!view.body.isComplete)
  const method = addHeaders(headers, check.added, view)
  server.editRequestHeaders?.(headers)
  const request: OutgoingRequest = {
    origin: server.origin,
    path: pathOf(check, view),
    method,
    headers,
    body: check.body === undefined ? bodyOf(view) : bodyFrom(check.body, view),
    cancellation,
    connection: server.connection,
    acceptsWhole: true,
  }
  await server.authorize?.apply(request, callerOf(view.exchange))
  return { request, credentials: server.authorize?.placed?.(request) }
}

function includeHeaders(headers: Headers, names: readonly string[], view: RequestView): void {
  const received = viewedHeaders(view)
  for (const name of names) {
    if (name === ':authority' || name === 'host') headers['host'] = hostOf(view)
    const value = received[name]
    if (value !== undefined && name !== 'content-length') headers[name] = value
  }
}

/** Adds headers by expression; returns the method. A header without a valid value is omitted. */
function addHeaders(headers: Headers, added: readonly NamedProgram[], view: RequestView): string {
  const { facts } = view
  let method = methodOf(view)
  for (const [name, program] of added) {
    const text = textOf(evaluate(program, facts))
    if (name === ':method') method = text !== undefined && isToken(text) ? text : method
    else if (name === ':authority') {
      if (text !== undefined && isHost(text)) headers['host'] = text
    } else if (text === undefined || !isHeaderValue(text)) delete headers[name]
    else headers[name] = text
  }
  return method
}

function pathOf({ path }: HttpCheck, view: RequestView): string {
  if (path === undefined) return pathAndQuery(view)
  const text = evaluate(path, view.facts)
  if (typeof text === 'string' && /^\/[\x21-\x7e]*$/.test(text)) return text
  throw new RequestFailure('the path of the check has no valid value')
}

function bodyOf({ body }: RequestView): Uint8Array | undefined {
  return body === undefined || body.bytes.byteLength === 0 ? undefined : body.bytes
}

function bodyFrom(program: CelProgram, { facts }: RequestView): Uint8Array | string {
  const value = evaluate(program, facts)
  if (value === undefined) throw new RequestFailure('the body of the check has no value')
  if (typeof value === 'string' || value instanceof Uint8Array) return value
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'bigint' ? JSON.rawJSON(String(member)) : member,
  )
}

async function answerOf(check: HttpCheck, view: RequestView, reply: Reply): Promise<Answer> {
  const { status } = reply
  if (status >= 500 || status < 200) {
    await readReply(reply)
    throw new ServiceFailure(`the service responded with status ${status}`, { isUnanswered: false })
  }
  if (status < 300) return permitted(check, view, reply)
  const body = hideCredentials(await readReply(reply), reply.credentials)
  const isRefusal = status === 401 || status === 403
  const redirect = isRefusal ? check.redirect : undefined
  const decision: Decision = {
    kind: 'denied',
    reply:
      redirect === undefined
        ? deniedReply(status, editsOf(reply.headers), body)
        : redirectTo(redirect, view.facts),
    metadata: undefined,
  }
  return { decision, isCacheable: isRefusal, bytes: body.byteLength }
}

async function permitted(check: HttpCheck, view: RequestView, reply: Reply): Promise<Answer> {
  const { headers, status } = reply
  const { metadata } = check
  // The body is read for the next call on the connection, too.
  const body = await readReply(reply)
  const response = { code: status, headers, body }
  const facts = metadata.length === 0 ? undefined : { ...view.facts, response }
  const decision: Decision = {
    kind: 'allowed',
    request: checkedEdits([
      ...removalsOf(headers),
      ...check.replyHeaders.flatMap((name) => copyOf(name, headers)),
    ]),
    query: undefined,
    reply: [],
    metadata: facts && metadataOf(metadata, facts),
  }
  return { decision, isCacheable: true, bytes: body.byteLength }
}

async function readReply({ headers, body }: Reply): Promise<Buffer> {
  const encoding = firstHeader(headers, 'content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    if (isSource(body)) body.cancel()
    throw new InvalidDecision('the response has a content-encoding')
  }
  return readAll(body, maxReplyBytes, 'upstream_too_large')
}

/** Values of a header replace those of the client, also if there are none. */
function copyOf(name: string, headers: Headers): FieldEdit[] {
  const values = [headers[name] ?? []].flat()
  const [first, ...more] = values
  if (first === undefined) return [{ kind: 'remove', name }]
  return [
    { kind: 'set', name, value: first },
    ...more.map((value): FieldEdit => ({ kind: 'append', name, value })),
  ]
}

/** Names in the header of Envoy's HTTP services. */
function removalsOf(headers: Headers): FieldEdit[] {
  const names = headers['x-envoy-auth-headers-to-remove']
  if (names === undefined) return []
  return String(names)
    .split(',')
    .map((name) => ({ kind: 'remove', name: name.trim() }))
}

function editsOf(headers: Headers): FieldEdit[] {
  const edits = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one): FieldEdit => ({ kind: 'append', name, value: one })),
  )
  return checkedEdits(edits)
}

function redirectTo(program: CelProgram, facts: object) {
  const location = evaluate(program, facts)
  if (typeof location !== 'string' || location === '' || !isHeaderValue(location))
    throw new RequestFailure('redirect has no valid value')
  return deniedReply(302, [{ kind: 'set', name: 'location', value: location }], Buffer.alloc(0))
}

function metadataOf(programs: readonly NamedProgram[], facts: object): JsonObject {
  const entries = programs.flatMap(([name, program]): [string, JsonValue][] => {
    const value = evaluate(program, facts)
    return value === undefined ? [] : [[name, toJson(value)]]
  })
  return Object.fromEntries(entries)
}

/** Values of expressions as JSON: bytes in base64, large integers rounded. */
function toJson(value: unknown): JsonValue {
  const text = JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === 'bigint') return Number(member)
    return member instanceof Uint8Array ? Buffer.from(member).toString('base64') : member
  })
  return JSON.parse(text ?? 'null')
}

function textOf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return Buffer.from(value).toString('latin1')
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value)
    default:
      return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : undefined
  }
}

/** Returns undefined if the evaluation fails. */
function evaluate(program: CelProgram, facts: object): unknown {
  try {
    return evaluateToWrite(program, facts)
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}

const unanswered: ReadonlySet<string> = new Set(['upstream_connect', 'upstream_timeout', 'upstream_reset'])

function failureOf(error: unknown, { cancelled }: CancellationSource): unknown {
  if (cancelled) return new ServiceFailure('call timed out', { isUnanswered: true, cause: error })
  if (!(error instanceof GatewayError)) return error
  const isUnanswered = unanswered.has(error.code)
  return new ServiceFailure(`call failed: ${error.code}`, { isUnanswered, cause: error })
}
