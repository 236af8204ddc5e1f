import type { Channel } from '../../../lib/planes/peers.ts'
import type { MessageFlow, TargetFailure } from '../message/message.ts'
import type { LegacyRequest, LegacyStream, Session, SessionUse } from '../sessions/session.ts'
import type { CallContext } from '../targets/target.ts'
import { sendStream } from './message-stream.ts'
import { fromPlainFailure, toPlainContext } from './plain-values.ts'
import { isHomeMessage } from './remote-session.ts'
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
      const response = createResponse(channel, session, sessions)
      if (await response.joined) {
        response.start(request, context)
        return true
      }
      channel.close()
      return false
    },
  }
}

function createResponse(channel: Channel, session: Session, { release, end }: CopySessions) {
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
      flow = session.target.request(json, context, {
        message(message) {
          if (begins && message.value['result'] !== undefined) {
            channel.post({ kind: 'initialized', context: toPlainContext(context) } satisfies LegacyMessage)
          }
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
      })
      stream.attach(flow)
    },
  }
}

function isJoined(message: unknown): message is Extract<LegacyMessage, { kind: 'joined' }> {
  return typeof message === 'object' && message !== null && 'kind' in message && message.kind === 'joined'
}
