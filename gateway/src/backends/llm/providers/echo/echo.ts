import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { isSource } from '../../../../net/http/body.ts'
import type { OutgoingRequest, Reply } from '../../../../net/http-client/send.ts'
import type { Provider } from '../provider.ts'
import { echoChat } from './chat.ts'
import { echoCompletion } from './completion.ts'
import type { EchoReply } from './echo-reply.ts'
import { echoEmbeddings } from './embeddings.ts'
import { eventSource } from './event-source.ts'
import { echoResponse } from './response.ts'
import { recordRequestHash } from './text.ts'

/**
 * Responds inside the gateway with the last input of the user: equal requests receive equal responses,
 * without account or network. For a first trial of the gateway, tests and benchmarks.
 */
export const echo: Provider = {
  name: 'echo',
  address: undefined,
  // Messages requests are served by translation.
  paths: {
    chat: '/chat/completions',
    completions: '/completions',
    embeddings: '/embeddings',
    responses: '/responses',
  },
  authorize() {},
  local: (request) => Promise.resolve(respondTo(request)),
}

/** Echo parses and responds in one step: 2 MiB take up to 30 ms. */
const maxBytes = 2 * 1024 * 1024

const responders: ReadonlyMap<string, (body: JsonObject) => EchoReply> = new Map([
  ['/chat/completions', echoChat],
  ['/completions', echoCompletion],
  ['/embeddings', echoEmbeddings],
  ['/responses', echoResponse],
])

function respondTo({ path, body }: OutgoingRequest): Reply {
  const query = path.indexOf('?')
  const respond = responders.get(query === -1 ? path : path.slice(0, query))
  if (!respond) return refuse(404, `echo does not answer ${path}`)
  if (body !== undefined && !(typeof body === 'object' && isSource(body)) && body.length > maxBytes)
    return refuse(413, `echo answers requests of up to ${maxBytes} bytes`)
  const request = parse(body)
  if (!request) return refuse(400, 'request body is not a JSON object')
  const response = respond(request)
  if (response.kind === 'tooLarge') return refuse(413, response.message)
  if (response.kind === 'whole') return json(200, response.body)
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream; charset=utf-8' },
    body: eventSource(response.events),
  }
}

function parse(body: OutgoingRequest['body']): JsonObject | undefined {
  if (body === undefined || (typeof body === 'object' && isSource(body))) return undefined
  const value: unknown = JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString())
  if (!isJsonObject(value)) return undefined
  recordRequestHash(value, body)
  return value
}

function refuse(status: number, message: string): Reply {
  return json(status, { error: { message, type: 'invalid_request_error', param: null, code: null } })
}

function json(status: number, body: JsonObject): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) }
}
