import { asGatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { sendGatewayRequest } from '../message/gateway-request.ts'
import { messageOf, methodNotFound, paramsOf } from '../message/json-rpc.ts'
import { withMergedSink } from '../message/merged-sink.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import { isSessionless } from '../message/protocol.ts'
import type { CallContext, RemoteMembers, Target, TargetSession } from '../targets/target.ts'
import { answerBeforeLogin, answerSignedIn, isSignIn } from './answers.ts'
import { createRemoteLogin } from './remote-login.ts'
import type { TargetLogin } from './target-login.ts'

/** Maximum size of the parameters of `initialize` in the state of a session. */
const maxStateChars = 2_000

/**
 * Begins sessions at a target with a login (`Target.login`). Until the user has signed in, the gateway
 * answers `initialize` and lists by itself, with a tool that returns the link of the login; other requests
 * fail with the link.
 */
export function withUserLogin(target: Target): Target {
  const { login, openFor: _, ...rest } = target
  if (login === undefined) return target
  return {
    ...rest,
    open: () => createLoginSession(target, login, undefined),
    resume(state, remote) {
      const { login: waiting } = state
      if (!isJsonObject(waiting)) return target.resume(state, remote)
      return state['remote'] === true
        ? resumeRemote(target, login, remote)
        : createLoginSession(target, login, waiting)
    },
  }
}

function resumeRemote(
  target: Target,
  login: TargetLogin,
  remote: RemoteMembers | undefined,
): TargetSession | undefined {
  const home = remote?.(target.name)
  const session = target.resume({ remote: true }, remote)
  return home && session && createRemoteLogin({ login, session, home })
}

/** Phase of a session; `waiting` has the parameters of `initialize`. */
type Phase =
  | { readonly kind: 'new' }
  | { readonly kind: 'waiting'; readonly params: JsonObject }
  | { readonly kind: 'connected'; readonly session: TargetSession }
  | { readonly kind: 'closed' }

function createLoginSession(
  target: Target,
  login: TargetLogin,
  waiting: JsonObject | undefined,
): TargetSession {
  let phase: Phase = waiting === undefined ? { kind: 'new' } : { kind: 'waiting', params: waiting }
  let connecting: { readonly session: TargetSession; readonly done: Promise<TargetSession> } | undefined
  let onTerminated: ((reason: string) => void) | undefined
  /** Whether the session at the target began after the id of this session: no other copy has it. */
  let isUnshared = waiting !== undefined

  /** The session at the target; undefined before the login. */
  const current = () => (phase.kind === 'connected' ? phase.session : undefined)

  function enter(session: TargetSession): TargetSession {
    session.onTerminated((reason) => onTerminated?.(reason))
    phase = { kind: 'connected', session }
    return session
  }

  /** Begins the session at the target for a client that the gateway has answered. */
  function connect(params: JsonObject, context: CallContext): Promise<TargetSession> {
    if (connecting === undefined) {
      const session = target.open()
      const done = initialize(session, params, context).finally(() => {
        connecting = undefined
      })
      connecting = { session, done }
    }
    return connecting.done
  }

  async function initialize(
    session: TargetSession,
    params: JsonObject,
    context: CallContext,
  ): Promise<TargetSession> {
    const message = messageOf({ jsonrpc: '2.0', id: 'tollgate/initialize', method: 'initialize', params })
    const result = await sendGatewayRequest(session, message, context, () => true).outcome
    const isWaiting = () => phase.kind === 'waiting'
    const failure =
      result.kind === 'failed'
        ? result.failure
        : result.message.value['result'] === undefined
          ? refusedInitialize
          : isWaiting()
            ? await session.deliver(initialized, context)
            : ended
    if (failure === undefined && isWaiting()) return enter(session)
    // The session was closed, or the client has initialized again.
    await session.close()
    throw new ConnectFailure(failure ?? ended)
  }

  /** The session at the target for a request with a token. */
  async function sessionFor({ value }: Message, context: CallContext): Promise<TargetSession> {
    switch (phase.kind) {
      case 'connected':
        return phase.session
      case 'closed':
        throw new ConnectFailure(ended)
      case 'new':
        return enter(target.open())
      case 'waiting':
        return value['method'] === 'initialize' ? enter(target.open()) : connect(phase.params, context)
    }
  }

  async function serve(
    message: Message,
    context: CallContext,
    sink: MessageSink,
  ): Promise<MessageFlow | undefined> {
    const token = await login.token(context.caller, undefined)
    const connected = current()
    if (connected !== undefined) return connected.request(message, context, sink)
    if (token.kind === 'refused') {
      sink.fail(token.failure)
      return undefined
    }
    if (token.kind === 'none') {
      if (message.value['method'] === 'initialize') wait(message)
      const hasBegun = phase.kind === 'waiting'
      const request = { message, target: target.name, url: token.url, hasBegun }
      answerBeforeLogin({ ...request, isSessionless: isSessionless(context) }, sink)
      return undefined
    }
    const isAnswered = phase.kind === 'waiting' && isSignIn(message)
    const session = await sessionFor(message, context)
    if (!isAnswered) return session.request(message, context, sink)
    answerSignedIn(message, sink)
    return undefined
  }

  function wait({ value }: Message): void {
    if (phase.kind === 'new' || phase.kind === 'waiting') phase = { kind: 'waiting', params: paramsOf(value) }
  }

  /** Requests in one flow, with failures of the connection. */
  function inSteps(sink: MessageSink, run: (sink: MessageSink) => Promise<MessageFlow | undefined>) {
    return withMergedSink(sink, async (merged) => {
      try {
        const flow = await run(merged.sink)
        if (flow !== undefined) merged.add({ flow })
      } catch (error) {
        merged.sink.fail(
          error instanceof ConnectFailure ? error.failure : { kind: 'error', error: asGatewayError(error) },
        )
      }
    })
  }

  async function close(): Promise<void> {
    const open = current() ?? connecting?.session
    phase = { kind: 'closed' }
    await open?.close()
  }

  /** The session for other data planes, which have added the token of the user. */
  const member: TargetSession = {
    request: (message, context, sink) =>
      inSteps(sink, async (merged) => {
        const session = await sessionFor(message, context)
        return (session.member?.(target.name) ?? session).request(message, context, merged)
      }),
    async deliver(message, context) {
      // The other data plane has answered it.
      if (message.value['method'] === 'initialize') wait(message)
      else return current()?.member?.(target.name)?.deliver(message, context)
    },
    listen: async (context, sink) =>
      current()?.member?.(target.name)?.listen(context, sink) ?? { kind: 'none' },
    state: () => undefined,
    close: () => Promise.resolve(),
    onTerminated() {},
  }

  return {
    request(message, context, sink) {
      const session = current()
      if (session !== undefined) return session.request(message, context, sink)
      return inSteps(sink, (merged) => serve(message, context, merged))
    },
    async deliver(message, context) {
      // Nothing at the target corresponds to messages before the login.
      if (phase.kind !== 'new') return current()?.deliver(message, context)
      // Without `initialize` (MCP 2026-07-28) each message begins by itself.
      const token = await login.token(context.caller, undefined)
      return token.kind === 'token' && phase.kind === 'new'
        ? enter(target.open()).deliver(message, context)
        : undefined
    },
    listen: async (context, sink) => current()?.listen(context, sink) ?? { kind: 'none' },
    state(remote) {
      if (phase.kind === 'connected') return phase.session.state(remote)
      if (remote !== undefined) return { login: {}, remote: true }
      isUnshared = true
      return { login: phase.kind === 'waiting' ? boundedParams(phase.params) : {} }
    },
    member(name) {
      if (name !== target.name) return undefined
      return phase.kind === 'connected' ? phase.session.member?.(name) : member
    },
    cancelPending: (notification) => current()?.cancelPending?.(notification),
    close,
    async closeUnshared() {
      if (isUnshared) await close()
    },
    onTerminated(listener) {
      onTerminated = listener
    },
  }
}

class ConnectFailure extends Error {
  readonly failure: TargetFailure
  constructor(failure: TargetFailure) {
    super('the session at the target did not begin')
    this.failure = failure
  }
}

const refusedInitialize: TargetFailure = {
  kind: 'refused',
  status: 502,
  code: methodNotFound,
  message: 'the target refused to initialize',
}
const ended: TargetFailure = { kind: 'ended', reason: 'it was closed' }

const initialized = messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' })

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
