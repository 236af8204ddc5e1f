import type { Message } from '../../message/message.ts'

/** Messages that belong to no request, while nobody listens. */
export type Unclaimed = {
  keep(message: Message): void
  /** Hands all of them over, in order. */
  takeAll(): Message[]
}

const maxMessages = 256
const maxChars = 1024 * 1024

/** Keeps a bounded number of the latest messages; `onDropped` is told each that has to go. */
export function createUnclaimed(onDropped: (message: Message) => void): Unclaimed {
  let messages: Message[] = []
  let chars = 0
  return {
    keep(message) {
      messages.push(message)
      chars += message.text.length
      while (messages.length > maxMessages || chars > maxChars) {
        const dropped = messages.shift()
        if (dropped === undefined) return
        chars -= dropped.text.length
        onDropped(dropped)
      }
    },
    takeAll() {
      const all = messages
      messages = []
      chars = 0
      return all
    },
  }
}
