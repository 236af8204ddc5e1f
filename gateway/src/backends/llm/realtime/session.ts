import { closeCodes } from '../../../net/websocket/frame.ts'
import { createClientMessages } from './client-messages.ts'
import type { MessageHandler, SessionParts } from './parts.ts'
import { createServerMessages } from './server-messages.ts'

/** Handlers of the messages of both sides. */
export type Session = { readonly fromClient: MessageHandler; readonly fromUpstream: MessageHandler }

/** Creates the handlers of a connection. A failed check ends it. */
export function createSession(parts: SessionParts): Session {
  const guarded =
    (handle: MessageHandler): MessageHandler =>
    async (bytes, isText) => {
      try {
        await handle(bytes, isText)
      } catch (error) {
        parts.connection.exchange.log.failure ??= error
        parts.ending.end({ code: closeCodes.policyViolation, reason: 'a check of the gateway failed' })
      }
    }
  return {
    fromClient: guarded(createClientMessages(parts)),
    fromUpstream: guarded(createServerMessages(parts)),
  }
}
