import { asGatewayError } from '../../../lib/gateway-error.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { callTargetOf } from '../message/items.ts'
import { readTargetObject } from '../message/json-edit.ts'
import { type ClientMessage, invalidRequest } from '../message/json-rpc.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import { accepted, failureText, refuseMcp, sessionEnded } from './error-responses.ts'
import type { ClientRequest } from './request-body.ts'
import { createResponseStream, startResponse } from './response-stream.ts'

/** Session of a batch. */
export type BatchSession = {
  /** Registers the batch as a use of the session; returns a function that releases it. */
  begin(response: { end(): void }): () => void
  /** Delivers a notification or response. */
  deliver(message: ClientMessage): Promise<Reply>
  request(message: ClientRequest, sink: MessageSink): MessageFlow
}

/**
 * Handles a JSON-RPC batch (JSON-RPC 2.0 section 6; MCP 2025-03-26, Transports): one event stream with the
 * response to each request, in order of arrival. Each message is handled like a single message.
 */
export async function handleBatch(
  exchange: Exchange,
  messages: readonly ClientMessage[],
  session: BatchSession,
): Promise<Reply> {
  const requests = messages.filter((message) => message.kind === 'request')
  const problem = problemOf(exchange, messages, requests)
  if (problem !== undefined) {
    const refusal = { status: 400, reason: 'batch', code: invalidRequest, message: problem }
    return refuseMcp(exchange, refusal, 'null')
  }
  for (const message of messages) {
    if (message.kind === 'request') continue
    const reply = await session.deliver(message)
    if (reply.status !== 202) return reply
  }
  return requests.length === 0 ? accepted() : handleRequests(exchange, requests, session)
}

/** Describes an invalid batch; undefined for a valid one. */
function problemOf(
  exchange: Exchange,
  messages: readonly ClientMessage[],
  requests: readonly ClientRequest[],
): string | undefined {
  if (requests.some(({ method }) => method === 'initialize')) return 'initialize must not be part of a batch'
  if (new Set(requests.map(({ id }) => id)).size < requests.length) return 'two requests have the same id'
  // Limits count HTTP requests, so several requests would evade them. A lenient target may also execute a
  // call without an id.
  const asking = messages.filter(({ kind, json }) => kind === 'request' || callTargetOf(json.value))
  if (asking.length > 1 && exchange.limits !== undefined) {
    return 'a batch must have a single request where requests are limited'
  }
  return undefined
}

function handleRequests(
  exchange: Exchange,
  requests: readonly ClientRequest[],
  session: BatchSession,
): Promise<Reply> {
  const flows: MessageFlow[] = []
  const open = new Set(requests)
  const response = createResponseStream({
    completes: () => open.size === 0,
    refuse: () => accepted(),
    onEnd: () => release(),
  })
  const release = session.begin({
    end() {
      for (const message of [...open]) fail(message, sessionEnded)
      forEach((flow) => flow.cancel())
    },
  })
  startResponse(exchange, response, () => {
    for (const message of requests) start(message)
    return {
      resume: () => forEach((flow) => flow.resume()),
      cancel: () => forEach((flow) => flow.cancel()),
    }
  })
  return response.reply

  function forEach(act: (flow: MessageFlow) => void): void {
    for (const flow of flows) act(flow)
  }

  function start(message: ClientRequest): void {
    try {
      flows.push(session.request(message, sinkOf(message)))
    } catch (error) {
      fail(message, { kind: 'error', error: asGatewayError(error) })
    }
  }

  function sinkOf(message: ClientRequest): MessageSink {
    return {
      message: (received) =>
        isResponse(received, message) ? settle(message, received) : response.sink.message(received),
      mark() {},
      end: () => fail(message, noResponse),
      fail: (failure) => fail(message, failure),
    }
  }

  function fail(message: ClientRequest, failure: TargetFailure): void {
    if (open.has(message)) settle(message, readTargetObject(failureText(failure, message)))
  }

  function settle(request: ClientRequest, received: Message): boolean {
    if (!open.delete(request)) return true
    const more = response.sink.message(received)
    if (open.size === 0) response.sink.end()
    return more
  }
}

function isResponse({ value }: Message, { id }: ClientRequest): boolean {
  return value['id'] === id && value['method'] === undefined
}

const noResponse: TargetFailure = {
  kind: 'refused',
  status: 502,
  code: -32603,
  message: 'the target sent no response',
}
