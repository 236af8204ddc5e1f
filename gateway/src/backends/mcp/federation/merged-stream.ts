import type { EventMark, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import type { CallContext, Listening } from '../targets/target.ts'
import { type Cursors, memberEventId, mergedEventId, parseEventId } from './cursors.ts'
import { activeSessions, type MemberSessions, memberFailure, memberName } from './member-sessions.ts'
import { createRenamingSink } from './renaming-sink.ts'

/**
 * Opens the streams of all targets, or resumes a broken stream: the event id identifies one target, or all.
 */
export function openStream(
  memberSessions: MemberSessions,
  context: CallContext,
  sink: MessageSink,
): Promise<Listening> {
  const eventId = context.lastEventId === undefined ? undefined : parseEventId(context.lastEventId)
  if (eventId?.kind !== 'one') return openMergedStream(memberSessions, context, sink, eventId?.cursors)
  return resumeMemberStream(memberSessions, eventId.index, { ...context, lastEventId: eventId.id }, sink)
}

/** Event mark for the stream of one target. */
export function memberMark(index: number, { id, retry }: EventMark): EventMark {
  return {
    ...(id === undefined ? undefined : { id: memberEventId(index, id) }),
    ...(retry === undefined ? undefined : { retry }),
  }
}

async function resumeMemberStream(
  memberSessions: MemberSessions,
  index: number,
  context: CallContext,
  sink: MessageSink,
): Promise<Listening> {
  const session = memberSessions.sessions[index]
  if (session === undefined) return { kind: 'none' }
  let flow: MessageFlow | undefined
  const renamed = createRenamingSink(memberSessions, index, sink, {
    mark: (mark) => memberMark(index, mark),
    stop: () => flow?.cancel(),
  })
  const listening = await session.listen(context, renamed)
  if (listening.kind === 'flow') flow = listening.flow
  return listening
}

/** Merges the streams of all targets. It ends with the first of them, so that the client reopens all. */
async function openMergedStream(
  memberSessions: MemberSessions,
  { lastEventId: _, ...context }: CallContext,
  sink: MessageSink,
  from: Cursors | undefined,
): Promise<Listening> {
  const cursors = new Map(from)
  const flows: MessageFlow[] = []
  let over = false

  const results = await Promise.all(activeSessions(memberSessions, context).map(({ index }) => open(index)))
  const failed = results.find((result) => result.kind === 'failed' && isFatal(result.failure))
  if (failed && (!memberSessions.failOpen || flows.length === 0)) {
    stop()
    return failed
  }
  if (flows.length === 0) return { kind: 'none' }
  return { kind: 'flow', flow: { resume, cancel: stop } }

  async function open(index: number): Promise<Listening> {
    const name = memberName(memberSessions, index)
    const lastEventId = cursors.get(name)
    let flow: MessageFlow | undefined
    const merged: MessageSink = {
      message: (message, mark) => over || sink.message(message, mark),
      mark(mark) {
        if (!over) sink.mark(mark)
      },
      end: () => finish(undefined),
      fail: finish,
    }
    const renamed = createRenamingSink(memberSessions, index, merged, {
      mark: (mark) => place(name, mark),
      stop: () => flow?.cancel(),
    })
    const own = lastEventId === undefined ? context : { ...context, lastEventId }
    const listening = await memberSessions.sessions[index]?.listen(own, renamed)
    if (listening?.kind === 'flow') {
      flow = listening.flow
      flows.push(flow)
      if (over) flow.cancel()
    }
    if (listening?.kind !== 'failed') return listening ?? { kind: 'none' }
    return { kind: 'failed', failure: memberFailure(memberSessions, index, listening.failure) }
  }

  /** Event mark with the positions of all streams after an event of one. */
  function place(name: string, { id, retry }: EventMark): EventMark {
    if (id === undefined) return retry === undefined ? {} : { retry }
    cursors.set(name, id)
    const merged = mergedEventId(cursors)
    return retry === undefined ? { id: merged } : { id: merged, retry }
  }

  function finish(failure: TargetFailure | undefined): void {
    if (over) return
    stop()
    if (failure) sink.fail(failure)
    else sink.end()
  }

  function stop(): void {
    over = true
    for (const flow of flows) flow.cancel()
  }

  function resume(): void {
    for (const flow of flows) flow.resume()
  }
}

/**
 * Servers without streams report that in many ways; only a terminated session or connection error is fatal.
 */
function isFatal(failure: TargetFailure): boolean {
  return failure.kind === 'ended' || failure.kind === 'error'
}
