import { firstHeader } from '../../net/headers.ts'
import type { Reply } from '../../net/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Backend } from '../../pipeline/policy.ts'
import { type Answer, createAnswer } from './answer.ts'
import { callContext, noteCall, ownerOf, tokenLifeMs } from './client.ts'
import { asGatewayError } from './joint.ts'
import {
  badRequest,
  type ClientMessage,
  headerMismatch,
  invalidParams,
  isResponseTo,
  unsupportedVersion,
} from './json-rpc.ts'
import { createLegacyEndpoint } from './legacy-endpoint.ts'
import {
  acceptsEventStream,
  acceptsPost,
  mismatchedHeader,
  revisionOf,
  revisions,
  sessionlessRevisions,
  versionInside,
} from './protocol.ts'
import {
  failureText,
  refuseMcp,
  refuseUnknownSession,
  replyToFailure,
  sessionEnded,
  tooManySessions,
} from './replies.ts'
import { answerBody, type EndpointOptions, idTextOf } from './request-body.ts'
import type { Session, Use } from './sessions.ts'
import { requestOnce } from './stateless.ts'
import type {
  CallContext,
  Listening,
  Message,
  MessageFlow,
  MessageSink,
  TargetFailure,
  TargetSession,
} from './targets/target.ts'

type Request = Extract<ClientMessage, { kind: 'request' }>

/** How long targets may take to introduce themselves; programs may have to be downloaded first. */
const initializeTimeoutMs = 180_000

/** The HTTP side of MCP's streamable HTTP transport (revision 2025-11-25, "Transports"). */
export function createEndpoint(options: EndpointOptions): Backend {
  const { federation, sessions, clock, stateless, rules, maxBodyBytes, version } = options

  const legacy = createLegacyEndpoint(options)
  let current = false

  return (exchange) => {
    // The first request shows that this configuration is the one that serves: sessions of targets that went with the old one end.
    if (!current) {
      current = true
      sessions.retain(federation)
    }
    const { method } = exchange.facts.request
    const path = exchange.forwarding?.path ?? exchange.facts.request.path
    // Clients probe for metadata of authorization servers, some behind the path: 404 says that there is none.
    if (path.includes('/.well-known/')) {
      return refuseMcp(exchange, { status: 404, reason: 'no metadata', message: 'there is no such document' })
    }
    if (path.endsWith('/sse')) return legacy(exchange)
    if (method === 'POST') return post(exchange)
    if (stateless || (method !== 'GET' && method !== 'DELETE')) return refuseMethod(exchange, stateless)
    if (revisionOf(exchange.facts.request.headers, undefined).kind === 'sessionless') {
      const message = 'this revision has no sessions: send a POST'
      return refuseMcp(exchange, { status: 400, reason: 'no sessions', message })
    }
    return method === 'GET' ? listen(exchange) : end(exchange)
  }

  function post(exchange: Exchange): Reply | Promise<Reply> {
    const { headers } = exchange.facts.request
    if (!acceptsPost(firstHeader(headers, 'accept'))) {
      const message = 'accept must list application/json and text/event-stream'
      return refuseMcp(exchange, { status: 406, reason: 'accept', message })
    }
    return answerBody(exchange, maxBodyBytes, (message) => route(exchange, message))
  }

  function route(exchange: Exchange, message: ClientMessage): Reply | Promise<Reply> {
    const { headers } = exchange.facts.request
    const revision = revisionOf(headers, message.json.value)
    if (revision.kind === 'unknown' || (revision.kind === 'sessionless' && !federation.target.sessionless)) {
      // Who names the revision in the message has no use for those with sessions.
      const alone = federation.target.sessionless && versionInside(message.json.value) !== undefined
      const supported = alone ? sessionlessRevisions : revisions
      return refuseRevision(exchange, { requested: revision.version, supported }, message)
    }
    noteCall(exchange, message, federation)
    const context = callContext(exchange, revision, rules)
    if (revision.kind === 'sessionless') return passOnce(exchange, message, context)
    if (stateless) return answerOnce(exchange, message, context)
    const id = firstHeader(headers, 'mcp-session-id')
    if (id === undefined) {
      if (message.kind === 'request' && message.method === 'initialize')
        return initialize(exchange, message, context)
      const refusal = { status: 400, reason: 'no session', code: badRequest }
      return refuseMcp(
        exchange,
        { ...refusal, message: 'the mcp-session-id header is missing' },
        idTextOf(message),
      )
    }
    const session = sessions.find(id, federation, ownerOf(exchange))
    if (session === undefined || session.legacy) return refuseUnknownSession(exchange, idTextOf(message))
    if (message.kind === 'request') return request(exchange, message, context, session)
    return deliver(exchange, message, context, session)
  }

  function initialize(exchange: Exchange, message: Request, context: CallContext): Promise<Reply> {
    const target = federation.target.open()
    let session: Session | undefined
    const answer = createAnswer({
      whole: true,
      completes: (received) => isResponseTo(received, message.id),
      headers: () => (session ? { 'mcp-session-id': session.id } : {}),
      refuse: (failure) => replyToFailure(exchange, failure, message),
      onOver() {
        clearTimeout(timer)
        if (session === undefined) void target.close()
      },
    })
    const timer = setTimeout(() => {
      answer.sink.fail(tooSlow)
      answer.abandon()
    }, initializeTimeoutMs)
    timer.unref()
    const sink = {
      ...answer.sink,
      message(received: Message) {
        if (isResponseTo(received, message.id) && received.value['result'] !== undefined) {
          session = sessions.begin(target, federation, ownerOf(exchange))
          if (session === undefined) {
            answer.sink.fail(tooManySessions)
            return true
          }
        }
        return answer.sink.message(received)
      },
    }
    begin(exchange, answer, () => target.request(message.json, context, sink))
    return answer.reply
  }

  function request(
    exchange: Exchange,
    message: Request,
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    if (message.method === 'initialize') {
      const refusal = {
        status: 400,
        reason: 'initialized',
        code: -32600,
        message: 'the session is initialized already',
      }
      return Promise.resolve(refuseMcp(exchange, refusal, message.idText))
    }
    const answer = createAnswer({
      completes: (received) => isResponseTo(received, message.id),
      refuse: (failure) => replyToFailure(exchange, failure, message),
      lastWords: (failure) => failureText(failure, message),
      onOver: (failure) => release(session, use, failure),
    })
    const use: Use = { kind: 'request', end: () => answer.sink.fail(sessionEnded) }
    session.uses.push(use)
    begin(exchange, answer, () => session.target.request(message.json, context, answer.sink))
    return answer.reply
  }

  async function deliver(
    exchange: Exchange,
    message: ClientMessage,
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    const failure = await session.target.deliver(message.json, context)
    if (failure === undefined) return { status: 202, headers: {}, body: undefined }
    if (failure.kind === 'ended') void sessions.end(session)
    return replyToFailure(exchange, failure, undefined)
  }

  async function listen(exchange: Exchange): Promise<Reply> {
    const { headers } = exchange.facts.request
    if (!acceptsEventStream(firstHeader(headers, 'accept'))) {
      const message = 'accept must list text/event-stream'
      return refuseMcp(exchange, { status: 406, reason: 'accept', message })
    }
    const session = sessionOf(exchange)
    if ('status' in session) return session
    const answer = createAnswer({
      refuse: (failure) => replyToFailure(exchange, failure, undefined),
      onOver(failure) {
        clearTimeout(expiry)
        release(session, use, failure)
      },
    })
    const use: Use = { kind: 'stream', end: () => answer.sink.end() }
    session.uses.push(use)
    // The client opens the stream again with a new token: a stream must not outlive what it was opened with.
    const expiry = setTimeout(() => answer.sink.end(), tokenLifeMs(exchange, clock.now()))
    expiry.unref()
    const context = callContext(exchange, revisionOf(headers, undefined), rules)
    const lastEventId = firstHeader(headers, 'last-event-id')
    const listening = await openStream(
      session,
      answer,
      lastEventId === undefined ? context : { ...context, lastEventId },
    )
    if (listening.kind === 'none') {
      answer.abandon()
      const message = 'the target offers no stream'
      return { ...refuseMcp(exchange, { status: 405, reason: 'no stream', message }) }
    }
    if (listening.kind === 'failed') answer.sink.fail(listening.failure)
    else {
      begin(exchange, answer, () => listening.flow)
      answer.open()
    }
    return answer.reply
  }

  async function end(exchange: Exchange): Promise<Reply> {
    const session = sessionOf(exchange)
    if ('status' in session) return session
    await sessions.end(session)
    return { status: 202, headers: {}, body: undefined }
  }

  /** The session of a GET or DELETE, or the refusal. */
  function sessionOf(exchange: Exchange): Session | Reply {
    const { headers } = exchange.facts.request
    const revision = revisionOf(headers, undefined)
    if (revision.kind === 'unknown') {
      return refuseRevision(exchange, { requested: revision.version, supported: revisions }, undefined)
    }
    const id = firstHeader(headers, 'mcp-session-id')
    if (id === undefined) {
      const message = 'the mcp-session-id header is missing'
      return refuseMcp(exchange, { status: 400, reason: 'no session', message })
    }
    const session = sessions.find(id, federation, ownerOf(exchange))
    return session === undefined || session.legacy ? refuseUnknownSession(exchange, undefined) : session
  }

  /** A request of a revision without sessions, passed to the only target as it is. */
  function passOnce(
    exchange: Exchange,
    message: ClientMessage,
    context: CallContext,
  ): Reply | Promise<Reply> {
    const { headers } = exchange.facts.request
    if (message.kind === 'request' && versionInside(message.json.value) === undefined) {
      const missing = '_meta must hold io.modelcontextprotocol/protocolVersion'
      const refusal = { status: 400, reason: 'no version in _meta', message: missing, code: invalidParams }
      return refuseMcp(exchange, refusal, idTextOf(message))
    }
    const mismatch = mismatchedHeader(headers, message)
    if (mismatch !== undefined) {
      const refusal = { status: 400, reason: 'header mismatch', message: mismatch, code: headerMismatch }
      return refuseMcp(exchange, refusal, idTextOf(message))
    }
    const target = federation.target.open()
    if (message.kind !== 'request') return deliverOnce(exchange, message, context, target)
    return answerFrom(exchange, message, target, (sink) => target.request(message.json, context, sink))
  }

  async function deliverOnce(
    exchange: Exchange,
    message: ClientMessage,
    context: CallContext,
    target: TargetSession,
  ): Promise<Reply> {
    const failure = await target.deliver(message.json, context)
    return failure
      ? replyToFailure(exchange, failure, undefined)
      : { status: 202, headers: {}, body: undefined }
  }

  /** Stateless mode: a session at the targets for this one request. Notifications would reach a session of their own: nobody. */
  function answerOnce(
    exchange: Exchange,
    message: ClientMessage,
    context: CallContext,
  ): Reply | Promise<Reply> {
    if (message.kind !== 'request') return { status: 202, headers: {}, body: undefined }
    const target = federation.target.openFor?.(message.json) ?? federation.target.open()
    return answerFrom(exchange, message, target, (sink) =>
      message.method === 'initialize'
        ? target.request(message.json, context, sink)
        : requestOnce(target, message.json, context, { sink, version }),
    )
  }

  function answerFrom(
    exchange: Exchange,
    message: Request,
    target: TargetSession,
    start: (sink: MessageSink) => MessageFlow,
  ): Promise<Reply> {
    const answer = createAnswer({
      completes: (received) => isResponseTo(received, message.id),
      refuse: (failure) => replyToFailure(exchange, failure, message),
      lastWords: (failure) => failureText(failure, message),
      onOver: () => void target.close(),
    })
    begin(exchange, answer, () => start(answer.sink))
    return answer.reply
  }

  function release(session: Session, use: Use, failure: TargetFailure | undefined): void {
    sessions.release(session, use)
    if (failure?.kind === 'ended') void sessions.end(session)
  }
}

async function openStream({ target }: Session, { sink }: Answer, context: CallContext): Promise<Listening> {
  try {
    return await target.listen(context, sink)
  } catch (error) {
    return { kind: 'failed', failure: { kind: 'error', error: asGatewayError(error) } }
  }
}

/** Starts what feeds an answer. Whatever goes wrong there ends the answer, so that its session is not in use for ever. */
function begin(exchange: Exchange, answer: Answer, start: () => MessageFlow): void {
  try {
    answer.attach(start())
  } catch (error) {
    answer.sink.fail({ kind: 'error', error: asGatewayError(error) })
  }
  exchange.cancellation.onCancel(answer.abandon)
}

type RevisionRefusal = { requested: string | undefined; supported: readonly string[] }

function refuseRevision(
  exchange: Exchange,
  data: RevisionRefusal,
  message: ClientMessage | undefined,
): Reply {
  return refuseMcp(
    exchange,
    {
      status: 400,
      reason: 'protocol version',
      message: `unsupported protocol version, supported are ${data.supported.join(', ')}`,
      code: unsupportedVersion,
      data,
    },
    message && idTextOf(message),
  )
}

function refuseMethod(exchange: Exchange, stateless: boolean): Reply {
  const message = stateless ? 'only POST is served without sessions' : 'only POST, GET and DELETE are served'
  const reply = refuseMcp(exchange, { status: 405, reason: 'method', message })
  reply.headers['allow'] = stateless ? 'POST' : 'GET, POST, DELETE'
  return reply
}

const tooSlow: TargetFailure = {
  kind: 'refused',
  status: 504,
  code: -32603,
  message: 'the targets took too long to initialize',
}
