import { GatewayError } from '../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../lib/json/json.ts'
import { readAll } from '../../net/http/body.ts'
import { isPlain } from '../../net/http/content-encoding.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import { discard, type Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import { type Exchange, sentPath } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { editRequestHeaders } from '../../pipeline/request-edits.ts'
import { object } from '../../schema/dsl.ts'
import type { A2aMeter } from '../../telemetry/metrics/services.ts'
import { differingPrefixes, rewriteCard } from './card.ts'
import { isCardPath, methodLabel, readCall, returnsCard } from './message.ts'

/** `a2a`. */
export const a2aSchema = object(
  {},
  {
    doc: 'The backends are agents with the A2A protocol: agent cards have the address of the gateway, and rules, metrics and log have the method of calls.',
  },
)

/** Size limit of agent cards. */
const maxCardBytes = 1024 * 1024

/** Compiles `a2a`. Bodies of calls must be read before. */
export function compileA2a(context: CompileContext, scope: string): Policy {
  const meter = context.metrics.a2a(scope)
  return {
    name: 'a2a',
    onRequest: (exchange) => readRequest(exchange, meter),
    onReply(exchange, reply) {
      return isCardReply(exchange, reply) ? rewriteReply(exchange, reply) : reply
    },
    explain: ({ facts }) => ({ method: methodLabel(facts.a2a?.method) }),
  }
}

function readRequest(exchange: Exchange, meter: A2aMeter): Reply | undefined {
  const { facts } = exchange
  const { method, path, headers } = facts.request
  if (method === 'GET' && isCardPath(path)) editRequestHeaders(exchange, withoutCoding)
  if (method !== 'POST' || facts.body === undefined || facts.body.byteLength === 0) return undefined
  if (!isJson(headers)) {
    if (!startsAsJson(facts.body)) return undefined
    meter.called('invalid')
    const message = 'the content type of a JSON body must be application/json'
    return refuse(exchange, { status: 415, code: 'a2a_invalid_request', message })
  }
  const read = readCall(facts.body)
  if (read.kind === 'invalid') {
    meter.called('invalid')
    return refuse(exchange, { status: 400, code: 'a2a_invalid_request', message: read.message })
  }
  meter.called(methodLabel(read.facts.method))
  facts.a2a = read.facts
  if (returnsCard(read.facts.method)) editRequestHeaders(exchange, withoutCoding)
  return undefined
}

/** Cards are rewritten, so that agents must send them without content coding. */
const withoutCoding = [{ kind: 'set', name: 'accept-encoding', value: 'identity' }] as const

function isJson(headers: Headers): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\b/i.test(firstHeader(headers, 'content-type') ?? '')
}

/** Whether agents that ignore the content type could read a body as JSON. */
function startsAsJson(body: Uint8Array): boolean {
  return /^(?:\u00ef\u00bb\u00bf)?[ \t\r\n]*[[{]/.test(Buffer.from(body).toString('latin1'))
}

function isCardReply({ facts }: Exchange, { status, headers }: Reply): boolean {
  if (status !== 200 || !isJson(headers)) return false
  const { method, path } = facts.request
  return (method === 'GET' && isCardPath(path)) || returnsCard(facts.a2a?.method)
}

/** Headers about the original bytes. */
const aboutBytes = [
  'content-length',
  'etag',
  'content-digest',
  'repr-digest',
  'digest',
  'content-md5',
  'accept-ranges',
]

async function rewriteReply(exchange: Exchange, reply: Reply): Promise<Reply> {
  const { headers } = reply
  if (!isPlain(firstHeader(headers, 'content-encoding'))) {
    discard(reply)
    throw new GatewayError('upstream_invalid', 'the agent card has a content coding')
  }
  const bytes = await readAll(reply.body, maxCardBytes, 'upstream_too_large')
  const document = parseJsonObject(bytes.toString())
  const card = document && cardOf(document)
  if (document === undefined || card === undefined) {
    // An error of JSON-RPC has no card.
    if (document?.['error'] !== undefined) return { ...reply, body: bytes }
    throw new GatewayError('upstream_invalid', 'the agent card is not a JSON object')
  }
  if (!rewriteCard(card, addressOf(exchange))) return { ...reply, body: bytes }
  for (const name of aboutBytes) delete headers[name]
  return { ...reply, body: Buffer.from(JSON.stringify(document)) }
}

/** The card itself, or the result of a call. */
function cardOf(document: JsonObject): JsonObject | undefined {
  if (document['jsonrpc'] === undefined) return document
  return isJsonObject(document['result']) ? document['result'] : undefined
}

function addressOf({ facts: { request }, forwarding }: Exchange) {
  const path = sentPath(request)
  return {
    origin: `${request.scheme}://${request.host}`,
    ...differingPrefixes(path, forwarding?.path ?? path),
  }
}
