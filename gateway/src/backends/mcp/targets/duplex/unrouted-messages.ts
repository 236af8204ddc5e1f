import type { Message } from '../../message/message.ts'

/** Messages that belong to no request, while nobody listens. */
export type UnroutedMessages = {
  add(message: Message): void
  /** Hands all of them over, in order. */
  removeAll(): Message[]
}

const maxMessages = 256
const maxChars = 1024 * 1024

/** Keeps a bounded number of the latest messages; `onDropped` is told each that has to go. */
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
