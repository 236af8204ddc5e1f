import { asGatewayError } from '../../../lib/gateway-error.ts'
import type { EventMark, Message, MessageSink } from '../message/message.ts'
import { type MemberSessions, memberFailure } from './member-sessions.ts'
import { renameFromTarget } from './rename.ts'

export type RenamingOptions = {
  /** Maps an event mark of the target to one for the client. */
  mark(mark: EventMark): EventMark
  /** Called once at the end. */
  onEnd?(): void
  /** Stops the target after an invalid message. */
  stop(): void
}

/** Forwards a target's stream with client-visible names. */
export function createRenamingSink(
  memberSessions: MemberSessions,
  index: number,
  sink: MessageSink,
  renaming: RenamingOptions,
): MessageSink {
  let over = false
  const finish = () => {
    over = true
    renaming.onEnd?.()
  }
  return {
    message(message, mark) {
      if (over) return true
      let renamed: Message
      try {
        renamed = renameFromTarget(message, index, memberSessions.names)
      } catch (error) {
        finish()
        sink.fail(memberFailure(memberSessions, index, { kind: 'error', error: asGatewayError(error) }))
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
      sink.fail(memberFailure(memberSessions, index, failure))
    },
  }
}
