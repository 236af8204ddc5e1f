import type { Clock } from '../../lib/clock.ts'
import { readAll } from '../../net/body.ts'
import { firstHeader } from '../../net/headers.ts'
import type { Reply } from '../../net/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { McpRules } from './client.ts'
import type { Federation } from './federation.ts'
import { type ClientMessage, readClientMessage } from './json-rpc.ts'
import { refuseMcp } from './replies.ts'
import type { Sessions } from './sessions.ts'

/** What the HTTP sides of both transports stand on. */
export type EndpointOptions = {
  federation: Federation
  sessions: Sessions
  clock: Clock
  stateless: boolean
  rules: McpRules | undefined
  maxBodyBytes: number
  version: string
}

/** Reads the message a POST carries and answers it, or says why there is none. */
export function answerBody(
  exchange: Exchange,
  maxBodyBytes: number,
  answer: (message: ClientMessage) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  const { headers } = exchange.facts.request
  const type = firstHeader(headers, 'content-type')
  if (type !== 'application/json' && type?.toLowerCase().startsWith('application/json') !== true) {
    const message = 'content-type must be application/json'
    return refuseMcp(exchange, { status: 415, reason: 'content-type', message })
  }
  if ((firstHeader(headers, 'content-encoding') ?? 'identity') !== 'identity') {
    const message = 'content-encoding is not supported for MCP messages'
    return refuseMcp(exchange, { status: 415, reason: 'content-encoding', message })
  }
  return readAll(exchange.body, maxBodyBytes, 'request_too_large').then((bytes) => {
    const message = readClientMessage(bytes.toString())
    if (message.kind !== 'malformed') return answer(message)
    const refusal = { status: 400, reason: 'malformed', message: message.message, code: message.code }
    return refuseMcp(exchange, refusal, message.idText)
  })
}

/** The id to answer, as JSON; undefined for what is not answered. */
export function idTextOf(message: ClientMessage): string | undefined {
  return message.kind === 'request' ? message.idText : undefined
}
