import { randomUUID } from 'node:crypto'
import { asGatewayError, GatewayError } from '../../../lib/gateway-error.ts'
import { type MergedSink, withMergedSink } from '../message/merged-sink.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import type { CallContext, Target, TargetSession } from '../targets/target.ts'
import type { TargetLogin } from './target-login.ts'

/** URLElicitationRequiredError (MCP 2025-11-25, Elicitation). */
const elicitationRequired = -32042

/**
 * Adds the token of the user to the calls of a target (`Target.login`), and repeats a call once with a new
 * token if the target refuses it. Innermost, so that limits and guards apply once to both.
 */
export function withUserAuthorization(target: Target): Target {
  const { openFor: _, ...rest } = target
  const { login } = target
  if (login === undefined) return target
  return {
    ...rest,
    open: () => authorized(target.name, login, target.open()),
    resume(state, remote) {
      const session = target.resume(state, remote)
      return session && authorized(target.name, login, session)
    },
  }
}

type FlowHolder = { readonly flow: MessageFlow }

type Attempt = {
  readonly message: Message
  readonly context: CallContext
  /** Token that the target has refused. */
  readonly refused: string | undefined
}

type Authorized =
  | { readonly kind: 'ready'; readonly token: string; readonly context: CallContext }
  | { readonly kind: 'failed'; readonly failure: TargetFailure }

function authorized(name: string, login: TargetLogin, session: TargetSession): TargetSession {
  async function authorize(context: CallContext, refused?: string): Promise<Authorized> {
    const token = await login.token(context.caller, refused)
    if (token.kind === 'refused') return { kind: 'failed', failure: token.failure }
    if (token.kind === 'none') return { kind: 'failed', failure: signInRequired(name, token.url) }
    const headers = { ...context.headers, authorization: `Bearer ${token.token}` }
    return { kind: 'ready', token: token.token, context: { ...context, headers } }
  }

  async function attempt(
    { message, context, refused }: Attempt,
    merged: Pick<MergedSink, 'sink' | 'isOver'> & { add(holder: FlowHolder): void },
  ): Promise<void> {
    const ready = await authorize(context, refused)
    if (ready.kind === 'failed') {
      merged.sink.fail(ready.failure)
      return
    }
    if (merged.isOver()) return
    // There is no newer token.
    if (ready.token === refused) {
      merged.sink.fail(refusedToken(name))
      return
    }
    const sink: MessageSink = {
      ...merged.sink,
      fail(failure) {
        if (!isUnauthorized(failure)) merged.sink.fail(withoutChallenge(failure, context))
        // The target has not executed a request that it refused, so a new token may be tried once.
        else if (refused === undefined) {
          const again = attempt({ message, context, refused: ready.token }, merged)
          again.catch((error: unknown) => merged.sink.fail({ kind: 'error', error: asGatewayError(error) }))
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

  const withoutChallenges = (failure: TargetFailure, context: CallContext) =>
    isUnauthorized(failure) ? refusedToken(name) : withoutChallenge(failure, context)

  return {
    ...session,
    request(message, context, sink) {
      if (context.isAuthorized === true) return session.request(message, context, sink)
      return withMergedSink(sink, (merged) => attempt({ message, context, refused: undefined }, merged))
    },
    async deliver(message, context) {
      if (context.isAuthorized === true) return session.deliver(message, context)
      const ready = await authorize(context)
      if (ready.kind === 'failed') return ready.failure
      const failure = await session.deliver(message, ready.context)
      return failure && withoutChallenges(failure, context)
    },
    async listen(context, sink) {
      if (context.isAuthorized === true) return session.listen(context, sink)
      const ready = await authorize(context)
      if (ready.kind === 'failed') return ready
      const listening = await session.listen(ready.context, sink)
      if (listening.kind !== 'failed') return listening
      return { kind: 'failed', failure: withoutChallenges(listening.failure, context) }
    },
  }
}

function isUnauthorized(failure: TargetFailure): boolean {
  return failure.kind === 'reply' && failure.reply.status === 401
}

function refusedToken(name: string): TargetFailure {
  const error = new GatewayError('credential_unavailable', `target "${name}" refuses the token of the user`)
  return { kind: 'error', error }
}

/** Failure with the link: clients with URL elicitation open it, others show the message. */
export function signInRequired(name: string, url: string): TargetFailure {
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
