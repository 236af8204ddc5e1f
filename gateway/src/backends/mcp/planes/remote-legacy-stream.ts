import { asGatewayError } from '../../../lib/gateway-error.ts'
import type { Channel } from '../../../lib/planes/peers.ts'
import { startFlow } from '../message/merged-sink.ts'
import type { MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import type { LegacyRequest, LegacyStream, Session, SessionUse } from '../sessions/session.ts'
import type { CallContext } from '../targets/target.ts'
import { sendStream } from './message-stream.ts'
import { fromPlainFailure } from './plain-values.ts'
import { isHomeMessage, isStreamMessage } from './remote-session.ts'
import type { LegacyMessage, SessionLinks } from './session-links.ts'

type CopySessions = {
  release(session: Session, use: SessionUse): void
  end(session: Session, reason: string): Promise<void>
}

/**
 * The stream of a session of the HTTP+SSE transport on another data plane. Requests start here, because rules
 * apply where the request arrived; their responses use the stream on the home.
 */
export function createRemoteLegacyStream(
  session: Session,
  links: SessionLinks,
  sessions: CopySessions,
): LegacyStream {
  const access = { id: session.id, owner: session.client.owner }
  return {
    own: undefined,
    extend: (lifeMs) => links.notify(session.home, { kind: 'extend', ...access, lifeMs }),
    async start(request, context) {
      const { json, idText } = request
      const channel = links.open(session.home, { kind: 'legacy', ...access, text: json.text, idText })
      const listen = (own: CallContext) => {
        const messages = links.open(session.home, { kind: 'legacyMessages', ...access })
        forwardMessages(messages, session, own, sessions)
      }
      const response = createResponse(channel, session, { sessions, listen })
      if ((await response.joined) && !session.ended) {
        response.start(request, context)
        return true
      }
      channel.close()
      return false
    },
  }
}

type ResponseOptions = {
  readonly sessions: CopySessions
  /** Called with the result of `initialize`. */
  readonly listen: (context: CallContext) => void
}

function createResponse(channel: Channel, session: Session, { sessions, listen }: ResponseOptions) {
  const { release, end } = sessions
  const { promise: joined, resolve } = Promise.withResolvers<boolean>()
  const stream = sendStream((message) => channel.post(message))
  let flow: MessageFlow | undefined
  const use: SessionUse = {
    kind: 'request',
    end() {
      flow?.cancel()
      channel.close()
      release(session, use)
    },
  }
  channel.onMessage((message) => {
    if (isJoined(message)) resolve(message.joined)
    else if (!isHomeMessage(message)) return
    else if (message.kind === 'credit') stream.credit(message.chars)
    else if (message.kind === 'fail') failed(fromPlainFailure(message.failure))
  })
  channel.onClose(() => {
    resolve(false)
    flow?.cancel()
    release(session, use)
  })

  function failed(failure: TargetFailure): void {
    if (failure.kind === 'ended') void end(session, failure.reason)
    resolve(false)
  }

  return {
    joined,
    start({ json }: LegacyRequest, context: CallContext): void {
      session.uses.push(use)
      const begins = json.value['method'] === 'initialize'
      const sink: MessageSink = {
        message(message) {
          if (begins && message.value['result'] !== undefined) listen(context)
          return stream.sink.message(message)
        },
        mark() {},
        end() {
          stream.sink.end()
          release(session, use)
        },
        fail(failure) {
          stream.sink.fail(failure)
          release(session, use)
        },
      }
      flow = startFlow(sink, () => session.target.request(json, context, sink))
      stream.attach(flow)
    },
  }
}

/**
 * Forwards messages outside requests to the stream on the home. They are received here, because the caller
 * and the rules of the request are known here only.
 */
function forwardMessages(
  channel: Channel,
  session: Session,
  context: CallContext,
  { release }: Pick<CopySessions, 'release'>,
): void {
  const stream = sendStream((message) => channel.post(message))
  let flow: MessageFlow | undefined
  let over = false
  const finish = () => {
    if (over) return
    over = true
    flow?.cancel()
    release(session, use)
  }
  const use: SessionUse = {
    kind: 'stream',
    end() {
      channel.close()
      finish()
    },
  }
  session.uses.push(use)
  channel.onMessage((message) => {
    if (isStreamMessage(message) && message.kind === 'credit') stream.credit(message.chars)
  })
  channel.onClose(finish)
  session.target.listen(context, stream.sink).then(
    (listening) => {
      if (listening.kind !== 'flow') {
        stream.sink.end()
        finish()
        return
      }
      flow = listening.flow
      if (over) flow.cancel()
      else stream.attach(flow)
    },
    (error: unknown) => stream.sink.fail({ kind: 'error', error: asGatewayError(error) }),
  )
}

function isJoined(message: unknown): message is Extract<LegacyMessage, { kind: 'joined' }> {
  return typeof message === 'object' && message !== null && 'kind' in message && message.kind === 'joined'
}
