import type { Message } from '../../message/message.ts'

/** Queue of messages outside requests, without an open stream. */
export type UnroutedMessages = {
  add(message: Message): void
  /** Removes and returns all messages in order. */
  removeAll(): Message[]
}

const maxMessages = 256
const maxChars = 1024 * 1024

/** Creates a bounded queue of the latest messages; `onDropped` receives evicted messages. */
export function createUnroutedMessages(onDropped: (message: Message) => void): UnroutedMessages {
  let messages: Message[] = []
  let chars = 0
  return {
    add(message) {
      messages.push(message)
      chars += message.text.length
      while (messages.length > maxMessages || chars > maxChars) {
        const dropped = messages.shift()
        if (dropped === undefined) return
        chars -= dropped.text.length
        onDropped(dropped)
      }
    },
    removeAll() {
      const all = messages
      messages = []
      chars = 0
      return all
    },
  }
}
