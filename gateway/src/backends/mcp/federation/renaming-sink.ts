import { asGatewayError } from '../../../lib/gateway-error.ts'
import type { EventMark, Message, MessageSink } from '../message/message.ts'
import { type Fleet, failureOf } from './member-sessions.ts'
import { renameFromTarget } from './rename.ts'

export type Renaming = {
  /** The mark a client sees for one of the target. */
  mark(mark: EventMark): EventMark
  /** Told once, when nothing more comes. */
  over?(): void
  /** Stops the target, whose messages cannot be understood. */
  stop(): void
}

/** Passes a target's stream on under the names that clients know. */
export function renamingSink(
  fleet: Fleet,
  index: number,
  sink: MessageSink,
  renaming: Renaming,
): MessageSink {
  let over = false
  const finish = () => {
    over = true
    renaming.over?.()
  }
  return {
    message(message, mark) {
      if (over) return true
      let renamed: Message
      try {
        renamed = renameFromTarget(message, index, fleet.names)
      } catch (error) {
        finish()
        sink.fail(failureOf(fleet, index, { kind: 'error', error: asGatewayError(error) }))
        renaming.stop()
        return true
      }
      return sink.message(renamed, mark && renaming.mark(mark))
    },
    mark(mark) {
      if (!over) sink.mark(renaming.mark(mark))
    },
    end() {
      if (over) return
      finish()
      sink.end()
    },
    fail(failure) {
      if (over) return
      finish()
      sink.fail(failureOf(fleet, index, failure))
    },
  }
}
