import type { Clock } from '../../../lib/clock.ts'
import type { JsonLimits } from '../../../lib/json/limits.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import { readAll } from '../../../net/http/body.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import { readJsonMediaType } from '../../../net/http/json-media-type.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { McpCheck } from '../../../pipeline/mcp/mcp-check.ts'
import { hasCoding } from '../../../pipeline/request-edits.ts'
import type { Federation } from '../federation/federation.ts'
import { type ClientBatch, type ClientMessage, readClientContent } from '../message/json-rpc.ts'
import type { OpenStreams } from '../sessions/open-streams.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { McpRules } from './call-context.ts'
import { refuseMcp } from './error-responses.ts'

/** Options of the endpoints of both transports. */
export type EndpointOptions = {
  federation: Federation
  sessions: Sessions
  /** Streams without sessions, which end at shutdown. */
  streams?: OpenStreams | undefined
  clock: Clock
  stateless: boolean
  rules: McpRules | undefined
  /** Limits and guards of single messages. */
  checks?: readonly McpCheck[] | undefined
  maxBodyBytes: number
  jsonLimits?: JsonLimits | undefined
  /** Bytes of arguments and results in the ledger; undefined if it stores none. */
  maxPayloadSize?: number | undefined
  workQueue: WorkQueue
  version: string
}

export type ClientRequest = Extract<ClientMessage, { kind: 'request' }>

/** Limits of a POST body. */
export type BodyLimits = {
  maxBytes: number
  /** Whether JSON-RPC batches are accepted. */
  batches: boolean
  jsonLimits: JsonLimits | undefined
  workQueue: WorkQueue
}

/** Refuses a POST by its headers: only unencoded JSON is accepted. */
export function refuseUnsupportedContent(exchange: Exchange): Reply | undefined {
  const { headers } = exchange.facts.request
  const isPlain = !hasCoding(exchange.forwarding)
  const mediaType = readJsonMediaType(headers)
  if (mediaType !== 'json') {
    const message =
      mediaType === 'charset'
        ? 'charset of content-type must be utf-8'
        : 'content-type must be application/json'
    return refuseMcp(exchange, { status: 415, reason: 'content-type', message })
  }
  if (!isPlain && (firstHeader(headers, 'content-encoding') ?? 'identity') !== 'identity') {
    const message = 'content-encoding is not supported for MCP messages'
    return refuseMcp(exchange, { status: 415, reason: 'content-encoding', message })
  }
  return undefined
}

/** Reads the message or batch of a POST and handles it, or refuses an invalid body. */
export async function handleBody(
  exchange: Exchange,
  { maxBytes, batches, jsonLimits: limits, workQueue }: BodyLimits,
  answer: (content: ClientMessage | ClientBatch) => Reply | Promise<Reply>,
): Promise<Reply> {
  const bytes = await readAll(exchange.body, maxBytes, 'request_too_large')
  const reading = readClientContent(bytes, { batches, limits, workQueue })
  const content = reading instanceof Promise ? await reading : reading
  if (content.kind !== 'malformed') return answer(content)
  const refusal = { status: 400, reason: 'malformed', message: content.message, code: content.code }
  return refuseMcp(exchange, refusal, content.idText)
}

/** JSON text of a request's id; undefined for other messages. */
export function idTextOf(message: ClientMessage): string | undefined {
  return message.kind === 'request' ? message.idText : undefined
}
