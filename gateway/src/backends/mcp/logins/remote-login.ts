import { withMergedSink } from '../message/merged-sink.ts'
import type { Message, MessageSink, TargetFailure } from '../message/message.ts'
import type { CallContext, TargetSession } from '../targets/target.ts'
import { answerBeforeLogin, answerSignedIn, isSignIn } from './answers.ts'
import type { TargetLogin } from './target-login.ts'

/** Session of a login whose home is another data plane. */
export type RemoteLogin = {
  readonly login: TargetLogin
  /** The session at the home, with rules and credentials of this data plane. */
  readonly session: TargetSession
  /** The session at the home. */
  readonly home: TargetSession
}

/**
 * The copy of a session before the login. The tokens of users are available here, because the request arrived
 * here; the home connects to the target with the first of them, and so once for all data planes.
 */
export function createRemoteLogin({ login, session, home }: RemoteLogin): TargetSession {
  const { target } = login
  let isConnected = false

  async function serve(message: Message, context: CallContext, sink: MessageSink) {
    const token = await login.token(context.caller, undefined)
    if (token.kind === 'refused') {
      sink.fail(token.failure)
      return undefined
    }
    if (token.kind === 'none') {
      const failure =
        message.value['method'] === 'initialize' ? await noteInitialize(message, context) : undefined
      if (failure === undefined)
        answerBeforeLogin({ message, target, url: token.url, hasBegun: true, isSessionless: false }, sink)
      else sink.fail(failure)
      return undefined
    }
    if (isSignIn(message) && !isConnected) {
      answerSignedIn(message, sink)
      return undefined
    }
    return session.request(message, context, {
      ...sink,
      message(received, mark) {
        isConnected ||= received.value['result'] !== undefined
        return sink.message(received, mark)
      },
    })
  }

  /** Reports the parameters of `initialize` to the home, which repeats them at the target after the login. */
  function noteInitialize(message: Message, context: CallContext): Promise<TargetFailure | undefined> {
    return home.deliver(message, context)
  }

  const hasToken = async ({ caller }: CallContext) =>
    isConnected || (await login.token(caller, undefined)).kind === 'token'

  return {
    request(message, context, sink) {
      if (isConnected) return session.request(message, context, sink)
      return withMergedSink(sink, async (merged) => {
        const flow = await serve(message, context, merged.sink)
        if (flow !== undefined) merged.add({ flow })
      })
    },
    deliver: async (message, context) =>
      (await hasToken(context)) ? session.deliver(message, context) : undefined,
    listen: async (context, sink) =>
      (await hasToken(context)) ? session.listen(context, sink) : { kind: 'none' },
    state: () => undefined,
    close: () => Promise.resolve(),
    onTerminated() {},
  }
}
