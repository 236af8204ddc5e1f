import type { EventMark, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import type { CallContext, Listening } from '../targets/target.ts'
import { mergedEventId, type Positions, readEventId, streamEventId } from './cursors.ts'
import { type Fleet, failureOf, liveParts, nameOf } from './member-sessions.ts'
import { renamingSink } from './renaming-sink.ts'

/** Opens the targets' own streams, or goes on with a broken one: the event id says of which target, or that it is of all. */
export function listenTo(fleet: Fleet, context: CallContext, sink: MessageSink): Promise<Listening> {
  const position = context.lastEventId === undefined ? undefined : readEventId(context.lastEventId)
  if (position?.kind !== 'one') return listenToAll(fleet, context, sink, position?.positions)
  return listenToOne(fleet, position.index, { ...context, lastEventId: position.id }, sink)
}

/** A mark of one target's stream. */
export function markOf(index: number, { id, retry }: EventMark): EventMark {
  return {
    ...(id === undefined ? undefined : { id: streamEventId(index, id) }),
    ...(retry === undefined ? undefined : { retry }),
  }
}

async function listenToOne(
  fleet: Fleet,
  index: number,
  context: CallContext,
  sink: MessageSink,
): Promise<Listening> {
  const session = fleet.parts[index]
  if (session === undefined) return { kind: 'none' }
  let flow: MessageFlow | undefined
  const renamed = renamingSink(fleet, index, sink, {
    mark: (mark) => markOf(index, mark),
    stop: () => flow?.cancel(),
  })
  const listening = await session.listen(context, renamed)
  if (listening.kind === 'flow') flow = listening.flow
  return listening
}

/** All targets' streams as one. It ends with the first of them, so that the client opens it anew, for all. */
async function listenToAll(
  fleet: Fleet,
  { lastEventId: _, ...context }: CallContext,
  sink: MessageSink,
  from: Positions | undefined,
): Promise<Listening> {
  const positions = new Map(from)
  const flows: MessageFlow[] = []
  let over = false

  const results = await Promise.all(liveParts(fleet).map(({ index }) => open(index)))
  const failed = results.find((result) => result.kind === 'failed' && isLoss(result.failure))
  if (failed && (!fleet.failOpen || flows.length === 0)) {
    stop()
    return failed
  }
  if (flows.length === 0) return { kind: 'none' }
  return { kind: 'flow', flow: { resume, cancel: stop } }

  async function open(index: number): Promise<Listening> {
    const name = nameOf(fleet, index)
    const lastEventId = positions.get(name)
    let flow: MessageFlow | undefined
    const merged: MessageSink = {
      message: (message, mark) => over || sink.message(message, mark),
      mark(mark) {
        if (!over) sink.mark(mark)
      },
      end: () => finish(undefined),
      fail: finish,
    }
    const renamed = renamingSink(fleet, index, merged, {
      mark: (mark) => place(name, mark),
      stop: () => flow?.cancel(),
    })
    const own = lastEventId === undefined ? context : { ...context, lastEventId }
    const listening = await fleet.parts[index]?.listen(own, renamed)
    if (listening?.kind === 'flow') {
      flow = listening.flow
      flows.push(flow)
      if (over) flow.cancel()
    }
    if (listening?.kind !== 'failed') return listening ?? { kind: 'none' }
    return { kind: 'failed', failure: failureOf(fleet, index, listening.failure) }
  }

  /** Where all streams stand after an event of one. */
  function place(name: string, { id, retry }: EventMark): EventMark {
    if (id === undefined) return retry === undefined ? {} : { retry }
    positions.set(name, id)
    const merged = mergedEventId(positions)
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

/** A server that cannot stream on its own says so in many ways; only a lost session or server is a failure. */
function isLoss(failure: TargetFailure): boolean {
  return failure.kind === 'ended' || failure.kind === 'error'
}
