import { asGatewayError } from '../../../../lib/gateway-error.ts'
import { callerOf, noCaller } from '../../../../upstream/credentials/caller.ts'
import type { Authorize } from '../../../../upstream/credentials/credentials.ts'
import type { MessageFlow, MessageSink, TargetFailure } from '../../message/message.ts'
import type { CallContext, Target, TargetSession } from '../target.ts'

/**
 * Adds the credential of the client, or a token for it, to the calls of a target (`Target.authorize`). It
 * applies on the data plane of the request, which has the client's token.
 */
export function withClientAuthorization(target: Target): Target {
  const { authorize } = target
  if (authorize === undefined) return target
  return {
    ...target,
    open: () => authorized(target.open(), authorize),
    resume(state, remote) {
      const session = target.resume(state, remote)
      return session && authorized(session, authorize)
    },
  }
}

type AuthorizeNow = () => Authorize | undefined

function authorized(session: TargetSession, authorize: AuthorizeNow): TargetSession {
  return {
    ...session,
    request(message, context, sink) {
      const prepared = prepare(authorize, context)
      return prepared.kind === 'ready'
        ? session.request(message, prepared.context, sink)
        : startLater(prepared.context, sink, (ready) => session.request(message, ready, sink))
    },
    async deliver(message, context) {
      const ready = await settled(authorize, context)
      return ready.kind === 'failed' ? ready.failure : session.deliver(message, ready.context)
    },
    async listen(context, sink) {
      const ready = await settled(authorize, context)
      return ready.kind === 'failed' ? ready : session.listen(ready.context, sink)
    },
  }
}

type Prepared =
  | { readonly kind: 'ready'; readonly context: CallContext }
  | { readonly kind: 'pending'; readonly context: Promise<CallContext> }

/** Only tokens that must be requested cost a promise. */
function prepare(authorizeNow: AuthorizeNow, context: CallContext): Prepared {
  const authorize = authorizeNow()
  if (authorize?.source !== 'client' || context.isAuthorized === true) return { kind: 'ready', context }
  const request = { headers: { ...context.headers }, path: '' }
  const withHeaders = () => ({ ...context, headers: request.headers })
  try {
    const { caller } = context
    const pending = authorize.apply(request, caller === undefined ? noCaller : callerOf(caller))
    if (pending === undefined) return { kind: 'ready', context: withHeaders() }
    return { kind: 'pending', context: pending.then(withHeaders) }
  } catch (error) {
    return { kind: 'pending', context: Promise.reject(asGatewayError(error)) }
  }
}

type Settled =
  | { readonly kind: 'ready'; readonly context: CallContext }
  | { readonly kind: 'failed'; readonly failure: TargetFailure }

async function settled(authorize: AuthorizeNow, context: CallContext): Promise<Settled> {
  try {
    return { kind: 'ready', context: await prepare(authorize, context).context }
  } catch (error) {
    return { kind: 'failed', failure: { kind: 'error', error: asGatewayError(error) } }
  }
}

/** Flow of a request that starts after its preparation, or fails with it. */
function startLater<T>(
  preparation: Promise<T>,
  sink: Pick<MessageSink, 'fail'>,
  start: (prepared: T) => MessageFlow,
): MessageFlow {
  let flow: MessageFlow | undefined
  let isCancelled = false
  preparation
    .then((prepared) => {
      if (!isCancelled) flow = start(prepared)
    })
    .catch((error: unknown) => {
      if (!isCancelled) sink.fail({ kind: 'error', error: asGatewayError(error) })
    })
  return {
    resume: () => flow?.resume(),
    cancel() {
      isCancelled = true
      flow?.cancel()
    },
  }
}
