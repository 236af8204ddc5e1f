import { randomUUID } from 'node:crypto'
import { asGatewayError, GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { sendGatewayRequest } from '../message/gateway-request.ts'
import { itemListOf } from '../message/items.ts'
import { messageOf, methodNotFound, paramsOf } from '../message/json-rpc.ts'
import { type MergedSink, withMergedSink } from '../message/merged-sink.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import { revisions } from '../message/protocol.ts'
import type { CallContext, Target, TargetSession } from '../targets/target.ts'
import type { TargetLogin } from './target-login.ts'

/** Tool of a target at which the user has not signed in. */
const signInTool = 'sign_in'
/** URLElicitationRequiredError (MCP 2025-11-25, Elicitation). */
const elicitationRequired = -32042
/** Maximum size of the parameters of `initialize` in the state of a session. */
const maxStateChars = 2_000

/**
 * Adds the token of the user to the calls of a target (`Target.login`). Until the user has signed in, the
 * gateway answers `initialize` and lists by itself, with a tool that returns the link of the login; other
 * requests fail with the link.
 */
export function withUserLogin(target: Target): Target {
  const { login, openFor: _, ...rest } = target
  if (login === undefined) return target
  return {
    ...rest,
    open: () => createLoginSession(target, login, undefined),
    resume(state, remote) {
      if (isJsonObject(state['login'])) return createLoginSession(target, login, state['login'])
      const session = target.resume(state, remote)
      return session && createConnected(target.name, login, session)
    },
  }
}

/** Phase of a session; `waiting` has the parameters of `initialize`. */
type Phase =
  | { readonly kind: 'new' }
  | { readonly kind: 'waiting'; readonly params: JsonObject }
  | { readonly kind: 'connected'; readonly session: TargetSession }

function createLoginSession(
  target: Target,
  login: TargetLogin,
  waiting: JsonObject | undefined,
): TargetSession {
  let phase: Phase = waiting === undefined ? { kind: 'new' } : { kind: 'waiting', params: waiting }
  let connecting: Promise<TargetSession> | undefined
  let onTerminated: ((reason: string) => void) | undefined

  function begin(): TargetSession {
    const session = createConnected(target.name, login, target.open())
    session.onTerminated((reason) => onTerminated?.(reason))
    phase = { kind: 'connected', session }
    return session
  }

  /** Begins the session at the target for a client that the gateway has answered. */
  function connect(params: JsonObject, context: CallContext): Promise<TargetSession> {
    connecting ??= initialize(params, context).finally(() => {
      connecting = undefined
    })
    return connecting
  }

  async function initialize(params: JsonObject, context: CallContext): Promise<TargetSession> {
    const session = createConnected(target.name, login, target.open())
    const message = messageOf({ jsonrpc: '2.0', id: 'tollgate/initialize', method: 'initialize', params })
    const { outcome } = sendGatewayRequest(session, message, context, () => true)
    const result = await outcome
    const failure =
      result.kind === 'failed'
        ? result.failure
        : result.message.value['result'] === undefined
          ? refusedInitialize
          : await session.deliver(initialized, context)
    if (failure !== undefined) {
      await session.close()
      throw new ConnectFailure(failure)
    }
    session.onTerminated((reason) => onTerminated?.(reason))
    phase = { kind: 'connected', session }
    return session
  }

  async function serve(
    message: Message,
    context: CallContext,
    sink: MessageSink,
  ): Promise<FlowHolder | undefined> {
    const { method } = message.value
    const token = await login.token(context.caller, undefined)
    if (phase.kind === 'connected') return { flow: phase.session.request(message, context, sink) }
    if (token.kind === 'refused') {
      sink.fail(token.failure)
      return undefined
    }
    if (token.kind === 'token') {
      if (phase.kind === 'new') return { flow: begin().request(message, context, sink) }
      const session = await connect(phase.params, context)
      if (!isSignIn(message)) return { flow: session.request(message, context, sink) }
      sink.message(listChanged)
      respond(message, sink, textResult('You are signed in. Request the list of tools again.'))
      return undefined
    }
    if (method === 'initialize') phase = { kind: 'waiting', params: paramsOf(message.value) }
    answer(message, token.url, sink)
    return undefined
  }

  /** Answers in place of the target. */
  function answer(message: Message, url: string, sink: MessageSink): void {
    const { method } = message.value
    const list = typeof method === 'string' ? itemListOf(method) : undefined
    const isKnown = phase.kind === 'waiting'
    if (method === 'initialize') respond(message, sink, initializeResult(message, target.name, url))
    else if (isKnown && (method === 'ping' || method === 'logging/setLevel')) respond(message, sink, {})
    else if (isKnown && method === 'tools/list') respond(message, sink, { tools: [toolOf(target.name)] })
    else if (isKnown && list !== undefined) respond(message, sink, { [list.member]: [] })
    else if (isSignIn(message))
      respond(
        message,
        sink,
        textResult(
          `Open this address in a browser to sign in to ${target.name}, then call the tool again: ${url}`,
        ),
      )
    else sink.fail(signInRequired(target.name, url))
  }

  return {
    request(message, context, sink) {
      if (phase.kind === 'connected') return phase.session.request(message, context, sink)
      return withMergedSink(sink, async (merged) => {
        try {
          const started = await serve(message, context, merged.sink)
          if (started !== undefined) merged.add(started)
        } catch (error) {
          merged.sink.fail(error instanceof ConnectFailure ? error.failure : failureOf(error))
        }
      })
    },
    async deliver(message, context) {
      // Nothing at the target corresponds to messages before the login.
      if (phase.kind === 'connected') return phase.session.deliver(message, context)
      // Without `initialize` (MCP 2026-07-28) each message begins by itself.
      if (phase.kind !== 'new') return undefined
      const token = await login.token(context.caller, undefined)
      return token.kind === 'token' ? begin().deliver(message, context) : undefined
    },
    async listen(context, sink) {
      return phase.kind === 'connected' ? phase.session.listen(context, sink) : { kind: 'none' }
    },
    state(remote) {
      if (phase.kind === 'connected') return phase.session.state(remote)
      return { login: phase.kind === 'waiting' ? boundedParams(phase.params) : {} }
    },
    member: (name) => (phase.kind === 'connected' ? phase.session.member?.(name) : undefined),
    cancelPending(notification) {
      if (phase.kind === 'connected') phase.session.cancelPending?.(notification)
    },
    async close() {
      if (phase.kind === 'connected') await phase.session.close()
    },
    onTerminated(listener) {
      onTerminated = listener
    },
  }
}

type FlowHolder = { readonly flow: MessageFlow }

class ConnectFailure extends Error {
  readonly failure: TargetFailure
  constructor(failure: TargetFailure) {
    super('the session at the target did not begin')
    this.failure = failure
  }
}

/** A session at the target with the token of the user in each call. */
function createConnected(name: string, login: TargetLogin, session: TargetSession): TargetSession {
  async function authorized(context: CallContext, refused?: string): Promise<Authorized> {
    const token = await login.token(context.caller, refused)
    if (token.kind === 'refused') return { kind: 'failed', failure: token.failure }
    if (token.kind === 'none') return { kind: 'failed', failure: signInRequired(name, token.url) }
    const headers = { ...context.headers, authorization: `Bearer ${token.token}` }
    return { kind: 'ready', token: token.token, context: { ...context, headers } }
  }

  async function attempt(
    { message, context, refused }: { message: Message; context: CallContext; refused: string | undefined },
    merged: Pick<MergedSink, 'sink' | 'isOver'> & { add(holder: FlowHolder): void },
  ): Promise<void> {
    const ready = await authorized(context, refused)
    if (ready.kind === 'failed') {
      merged.sink.fail(ready.failure)
      return
    }
    if (merged.isOver()) return
    const sink: MessageSink = {
      ...merged.sink,
      fail(failure) {
        if (!isUnauthorized(failure)) merged.sink.fail(withoutChallenge(failure, context))
        // The target has not executed a request that it refused, so a new token may be tried once.
        else if (refused === undefined) {
          const again = attempt({ message, context, refused: ready.token }, merged)
          again.catch((error: unknown) => merged.sink.fail(failureOf(error)))
        } else merged.sink.fail(refusedToken(name))
      },
    }
    merged.add({ flow: session.request(message, ready.context, sink) })
  }

  /** Replaces a challenge (403): the client would request a token of the server of the target. */
  function withoutChallenge(failure: TargetFailure, { caller }: CallContext): TargetFailure {
    if (failure.kind !== 'reply' || failure.reply.headers['www-authenticate'] === undefined) return failure
    const url = login.link(caller)
    return url === undefined
      ? refusedToken(name)
      : linkFailure(url, `The account at ${name} does not permit this. Sign in again with more permissions.`)
  }

  return {
    ...session,
    request: (message, context, sink) =>
      withMergedSink(sink, (merged) => attempt({ message, context, refused: undefined }, merged)),
    async deliver(message, context) {
      const ready = await authorized(context)
      if (ready.kind === 'failed') return ready.failure
      const failure = await session.deliver(message, ready.context)
      if (failure === undefined) return undefined
      return isUnauthorized(failure) ? refusedToken(name) : withoutChallenge(failure, context)
    },
    async listen(context, sink) {
      const ready = await authorized(context)
      if (ready.kind === 'failed') return ready
      const listening = await session.listen(ready.context, sink)
      if (listening.kind !== 'failed') return listening
      const { failure } = listening
      const shown = isUnauthorized(failure) ? refusedToken(name) : withoutChallenge(failure, context)
      return { kind: 'failed', failure: shown }
    },
  }
}

type Authorized =
  | { readonly kind: 'ready'; readonly token: string; readonly context: CallContext }
  | { readonly kind: 'failed'; readonly failure: TargetFailure }

function isUnauthorized(failure: TargetFailure): boolean {
  return failure.kind === 'reply' && failure.reply.status === 401
}

function refusedToken(name: string): TargetFailure {
  const error = new GatewayError('credential_unavailable', `target "${name}" refuses the token of the user`)
  return { kind: 'error', error }
}

/** Failure with the link: clients with URL elicitation open it, others show the message. */
function signInRequired(name: string, url: string): TargetFailure {
  return linkFailure(url, `Sign in to ${name} to use its tools.`)
}

function linkFailure(url: string, message: string): TargetFailure {
  return {
    kind: 'refused',
    status: 403,
    code: elicitationRequired,
    message: `${message} Open ${url}`,
    data: { elicitations: [{ mode: 'url', elicitationId: randomUUID(), url, message }] },
  }
}

function failureOf(error: unknown): TargetFailure {
  return { kind: 'error', error: asGatewayError(error) }
}

const refusedInitialize: TargetFailure = {
  kind: 'refused',
  status: 502,
  code: methodNotFound,
  message: 'the target refused to initialize',
}

const initialized = messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' })
const listChanged = messageOf({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })

function isSignIn({ value }: Message): boolean {
  return value['method'] === 'tools/call' && paramsOf(value)['name'] === signInTool
}

function toolOf(name: string): JsonObject {
  return {
    name: signInTool,
    title: `Sign in to ${name}`,
    description: `Returns the address at which the user signs in to ${name}. Its other tools are available afterwards.`,
    inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: true, openWorldHint: false },
  }
}

function textResult(text: string): JsonObject {
  return { content: [{ type: 'text', text }] }
}

function initializeResult({ value }: Message, name: string, url: string): JsonObject {
  const { protocolVersion: requested } = paramsOf(value)
  const isKnown = typeof requested === 'string' && revisions.includes(requested)
  return {
    protocolVersion: isKnown ? requested : (revisions[0] ?? ''),
    capabilities: { tools: { listChanged: true }, prompts: {}, resources: {}, logging: {} },
    serverInfo: { name, version: '1' },
    instructions: `The user must sign in to ${name} before its tools can be used. Address: ${url}`,
  }
}

/** Parameters of `initialize` for the state; without client details if these are long. */
function boundedParams(params: JsonObject): JsonObject {
  if (JSON.stringify(params).length <= maxStateChars) return params
  const { protocolVersion } = params
  return {
    protocolVersion: typeof protocolVersion === 'string' ? protocolVersion.slice(0, 40) : null,
    capabilities: {},
    clientInfo: { name: 'client', version: '1' },
  }
}

function respond({ value }: Message, sink: MessageSink, result: JsonObject): void {
  sink.message(messageOf({ jsonrpc: '2.0', id: value['id'] ?? null, result }))
  sink.end()
}
