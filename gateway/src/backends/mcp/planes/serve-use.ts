import { asGatewayError, GatewayError } from '../../../lib/gateway-error.ts'
import type { Channel } from '../../../lib/planes/peers.ts'
import { readTargetObject } from '../message/json-edit.ts'
import type { MessageFlow, TargetFailure } from '../message/message.ts'
import type { Session, SessionUse } from '../sessions/session.ts'
import type { TargetSession } from '../targets/target.ts'
import { receiveStream, sendStream } from './message-stream.ts'
import { fromPlainContext, toPlainFailure } from './plain-values.ts'
import { type HomeMessage, isStreamMessage, type MemberUse } from './remote-session.ts'
import type { LegacyMessage, SessionOpening } from './session-links.ts'

/** Sessions of this data plane, for uses by other data planes. */
export type HomeSessions = {
  /** The bound session of an id, for its owner; counts as a use. */
  touch(id: string, owner: string): Session | undefined
  endReasonOf(id: string, owner: string): string | undefined
  release(session: Session, use: SessionUse): void
  end(session: Session, reason: string): Promise<void>
}

/** Serves a use of a session of this data plane by a request on another data plane. */
export function serveUse(channel: Channel, opening: SessionOpening, sessions: HomeSessions): void {
  const { id, owner } = opening
  const session = sessions.touch(id, owner)
  if (session === undefined) {
    refuse(channel, { kind: 'ended', reason: sessions.endReasonOf(id, owner) ?? 'it does not exist' })
    return
  }
  if (opening.kind === 'legacy') {
    serveLegacyRequest(channel, opening, session, sessions)
    return
  }
  if (opening.kind === 'legacyMessages') {
    serveLegacyMessages(channel, session)
    return
  }
  const member = session.target.member?.(opening.member)
  if (member === undefined) {
    const error = new GatewayError('upstream_connect', `target "${opening.member}" is not available`)
    refuse(channel, { kind: 'error', error })
    return
  }
  serveMemberUse(channel, opening, { session, member }, sessions)
}

/** Fails a use. The other side closes the channel. */
function refuse(channel: Channel, failure: TargetFailure): void {
  channel.post({ kind: 'fail', failure: toPlainFailure(failure) } satisfies HomeMessage)
}

type Served = { readonly session: Session; readonly member: TargetSession }

function serveMemberUse(
  channel: Channel,
  use: MemberUse,
  { session, member }: Served,
  sessions: HomeSessions,
): void {
  const context = fromPlainContext(use.context, () => session.client.quotaKey)
  const active = beginUse(channel, use.kind === 'listen' ? 'stream' : 'request', session, sessions)
  const stream = sendStream((message) => channel.post(message))
  channel.onMessage((message) => {
    if (isStreamMessage(message) && message.kind === 'credit') stream.credit(message.chars)
  })
  const attach = (flow: MessageFlow) => {
    stream.attach(flow)
    active.attach(flow)
  }
  const sink = {
    ...stream.sink,
    end() {
      stream.sink.end()
      active.release()
    },
    fail(failure: TargetFailure) {
      stream.sink.fail(failure)
      active.release()
    },
  }
  try {
    if (use.kind === 'request') attach(member.request(readTargetObject(use.text), context, sink))
    else if (use.kind === 'listen') void openStream()
    else void deliver()
  } catch (error) {
    sink.fail({ kind: 'error', error: asGatewayError(error) })
  }

  async function deliver(): Promise<void> {
    const failure = await outcomeOf(() => member.deliver(readTargetObject(use.text), context))
    channel.post({
      kind: 'delivered',
      failure: failure && toPlainFailure(failure),
    } satisfies HomeMessage)
    active.release()
  }

  async function openStream(): Promise<void> {
    try {
      const listening = await member.listen(context, sink)
      if (listening.kind === 'failed') {
        sink.fail(listening.failure)
        return
      }
      channel.post({ kind: 'listening', stream: listening.kind === 'flow' } satisfies HomeMessage)
      if (listening.kind === 'flow') attach(listening.flow)
      else active.release()
    } catch (error) {
      sink.fail({ kind: 'error', error: asGatewayError(error) })
    }
  }
}

async function outcomeOf(
  deliver: () => ReturnType<TargetSession['deliver']>,
): Promise<TargetFailure | undefined> {
  try {
    return await deliver()
  } catch (error) {
    return { kind: 'error', error: asGatewayError(error) }
  }
}

type ActiveUse = {
  /** Sets the flow, which is cancelled with the channel. */
  attach(flow: MessageFlow): void
  /** Ends the use. */
  release(): void
}

/** Registers a use until its release, or the end of the session or the channel. */
function beginUse(
  channel: Channel,
  kind: SessionUse['kind'],
  session: Session,
  sessions: HomeSessions,
): ActiveUse {
  let over = false
  let flow: MessageFlow | undefined
  const release = () => {
    if (over) return
    over = true
    sessions.release(session, use)
  }
  const cancel = () => {
    flow?.cancel()
    release()
  }
  const use: SessionUse = {
    kind,
    end(reason = 'it was closed') {
      if (over) return
      if (kind === 'stream') channel.post({ kind: 'end' } satisfies HomeMessage)
      else refuse(channel, { kind: 'ended', reason })
      cancel()
    },
  }
  session.uses.push(use)
  channel.onClose(cancel)
  return {
    attach(attached) {
      flow = attached
      if (over) attached.cancel()
    },
    release,
  }
}

/** Forwards the responses to a request on another data plane to the stream of the HTTP+SSE transport. */
function serveLegacyRequest(
  channel: Channel,
  { text, idText }: Extract<SessionOpening, { kind: 'legacy' }>,
  session: Session,
  { end }: HomeSessions,
): void {
  const own = session.legacy?.own
  const joined = own?.join(
    { json: readTargetObject(text), idText },
    { resume: () => stream?.flow.resume(), cancel: () => stream?.flow.cancel() },
  )
  channel.post({ kind: 'joined', joined: joined !== undefined } satisfies LegacyMessage)
  const stream =
    joined &&
    receiveStream(
      channel,
      {
        ...joined,
        fail(failure) {
          joined.fail(failure)
          if (failure.kind === 'ended') void end(session, failure.reason)
        },
      },
      requestLost,
    )
  if (stream === undefined) return
  channel.onMessage((message) => {
    if (isStreamMessage(message)) stream.receive(message)
  })
  channel.onClose(stream.closed)
}

/** Failure of a request whose data plane has ended; its session continues. */
const requestLost: TargetFailure = {
  kind: 'error',
  error: new GatewayError('upstream_reset', 'the worker thread of the request has ended'),
}

/** Forwards messages outside requests, which another data plane receives, to the stream of the transport. */
function serveLegacyMessages(channel: Channel, session: Session): void {
  const sink = session.legacy?.own?.joinMessages({
    resume: () => stream?.flow.resume(),
    cancel: () => stream?.flow.cancel(),
  })
  const stream = sink && receiveStream(channel, sink, requestLost)
  if (stream === undefined) {
    channel.close()
    return
  }
  channel.onMessage((message) => isStreamMessage(message) && stream.receive(message))
  channel.onClose(stream.closed)
}
