import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { editJson, readTargetObject } from '../message/json-edit.ts'
import {
  type ClientMessage,
  headerMismatch,
  invalidParams,
  invalidRequest,
  isResponseTo,
} from '../message/json-rpc.ts'
import type { MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import { headerMismatchOf, revisions, sessionlessRevisions, versionInMeta } from '../message/protocol.ts'
import { endOfSubscription, listenMethod } from '../message/subscriptions.ts'
import type { CallContext, TargetSession } from '../targets/target.ts'
import { credentialLifetimeMs, recordResult } from './call-context.ts'
import { accepted, failureText, refuseMcp, replyToFailure, replyWithJsonRpcError } from './error-responses.ts'
import { type ClientRequest, type EndpointOptions, idTextOf } from './request-body.ts'
import { createResponseStream, startResponse } from './response-stream.ts'
import { sendStatelessRequest } from './stateless-request.ts'

/** Endpoint for messages without a session. */
export type SessionlessEndpoint = {
  /** Forwards a message of a sessionless revision. */
  forward(exchange: Exchange, message: ClientMessage, context: CallContext): Reply | Promise<Reply>
  /** Handles a message in stateless mode with a target session for this request. */
  handleStateless(exchange: Exchange, message: ClientMessage, context: CallContext): Reply | Promise<Reply>
}

type Responding = {
  refuse(exchange: Exchange, failure: TargetFailure, message: ClientRequest): Reply
  start(sink: MessageSink): MessageFlow
  onEnd?(): void
}

/** Sessionless part of the streamable HTTP transport. */
export function createSessionlessEndpoint(options: EndpointOptions): SessionlessEndpoint {
  const { federation, version } = options
  return {
    forward(exchange, message, context) {
      const { headers } = exchange.facts.request
      if (message.kind === 'request' && versionInMeta(message.json.value) === undefined) {
        const missing = '_meta must hold io.modelcontextprotocol/protocolVersion'
        const refusal = { status: 400, reason: 'no version in _meta', message: missing, code: invalidParams }
        return refuseMcp(exchange, refusal, idTextOf(message))
      }
      if (message.kind === 'response') {
        const reason = 'this revision has no responses of clients: repeat the request with inputResponses'
        return refuseMcp(exchange, { status: 400, reason: 'response', message: reason, code: invalidRequest })
      }
      const mismatch = headerMismatchOf(headers, message)
      if (mismatch !== undefined) {
        const refusal = { status: 400, reason: 'header mismatch', message: mismatch, code: headerMismatch }
        return refuseMcp(exchange, refusal, idTextOf(message))
      }
      const target = federation.target.openFor?.(message.json) ?? federation.target.open()
      if (message.kind !== 'request') return deliverOnce(exchange, message, context, target)
      if (message.method === listenMethod) return subscribe(exchange, message, target, context)
      return respondFrom(exchange, message, target, {
        refuse: replyToFailure,
        start: (sink) =>
          target.request(
            message.json,
            context,
            message.method === 'server/discover' ? withServedRevisions(sink) : sink,
          ),
      })
    },
    handleStateless(exchange, message, context) {
      // A notification would reach a new session without any receiver.
      if (message.kind !== 'request') return accepted()
      const target = federation.target.openFor?.(message.json) ?? federation.target.open()
      if (message.method === 'initialize') {
        return respondFrom(exchange, message, target, {
          refuse: replyToFailure,
          start: (sink) => target.request(message.json, context, sink),
        })
      }
      return respondFrom(exchange, message, target, {
        // Client libraries end their session for statuses other than 200.
        refuse: replyWithJsonRpcError,
        start: (sink) => sendStatelessRequest(target, message.json, context, { sink, version }),
      })
    },
  }

  /** Responds with a stream that ends with its credential; the client reopens it with a new one. */
  function subscribe(
    exchange: Exchange,
    message: ClientRequest,
    target: TargetSession,
    context: CallContext,
  ): Promise<Reply> {
    let remove = () => {}
    let expiry: NodeJS.Timeout | undefined
    return respondFrom(exchange, message, target, {
      refuse: replyToFailure,
      start(sink) {
        const end = () => {
          sink.message(endOfSubscription(message.id))
          flow.cancel()
          sink.end()
        }
        remove = options.streams?.add(federation, end) ?? remove
        expiry = setTimeout(end, credentialLifetimeMs(exchange, options.clock.now())).unref()
        const flow = target.request(message.json, context, sink)
        return flow
      },
      onEnd() {
        remove()
        clearTimeout(expiry)
      },
    })
  }
}

const served: ReadonlySet<unknown> = new Set([...sessionlessRevisions, ...revisions])

/** Removes revisions that the gateway does not serve from the versions of a target. */
function withServedRevisions(sink: MessageSink): MessageSink {
  return {
    ...sink,
    message(message, mark) {
      const text = editJson(message.text, ['result', 'supportedVersions'], (written) => {
        const versions: unknown = JSON.parse(written)
        if (!Array.isArray(versions)) return written
        return JSON.stringify(versions.filter((version) => served.has(version)))
      })
      return sink.message(text === message.text ? message : readTargetObject(text), mark)
    },
  }
}

async function deliverOnce(
  exchange: Exchange,
  message: ClientMessage,
  context: CallContext,
  target: TargetSession,
): Promise<Reply> {
  const failure = await target.deliver(message.json, context)
  return failure === undefined ? accepted() : replyToFailure(exchange, failure, undefined)
}

function respondFrom(
  exchange: Exchange,
  message: ClientRequest,
  target: TargetSession,
  { refuse, start, onEnd }: Responding,
): Promise<Reply> {
  const response = createResponseStream({
    completes: (received) => isResponseTo(received, message.id),
    onResponse: (received) => recordResult(exchange, received),
    refuse: (failure) => refuse(exchange, failure, message),
    errorText: (failure) => failureText(failure, message),
    onEnd() {
      onEnd?.()
      void target.close()
    },
  })
  startResponse(exchange, response, () => start(response.sink))
  return response.reply
}
