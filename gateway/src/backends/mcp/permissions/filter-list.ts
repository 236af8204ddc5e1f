import { asGatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { editTopLevel } from '../../../lib/json/text.ts'
import { createPauses, longChars } from '../message/cooperative-yield.ts'
import type { List } from '../message/items.ts'
import type { Message, MessageSink } from '../message/message.ts'
import { type ReadList, readList } from '../message/read-list.ts'

/** A sink behind a filter. After `cancel` nothing more reaches the sink. */
export type FilteredSink = { readonly sink: MessageSink; cancel(): void }

/**
 * Leaves items out of the response to a list request; one without a name cannot be judged and goes too. A long list is filtered in
 * turns with other work, and what comes behind it waits.
 */
export function filtered(sink: MessageSink, list: List, keeps: (name: string) => boolean): FilteredSink {
  let over = false
  /** Set while a long list is filtered: what comes behind it. */
  let waiting: (() => void)[] | undefined

  function inOrder(action: () => void): void {
    if (over) return
    if (waiting) waiting.push(action)
    else action()
  }

  function failWith(error: unknown): void {
    if (over) return
    over = true
    sink.fail({ kind: 'error', error: asGatewayError(error) })
  }

  function filter(message: Message): Message | Promise<Message> {
    return message.text.length < longChars
      ? filterAtOnce(message, list, keeps)
      : filterInTurns(message, list, keeps)
  }

  function pass(pending: Promise<Message>, send: (message: Message) => void): void {
    const behind: (() => void)[] = []
    waiting = behind
    pending.then((message) => {
      waiting = undefined
      if (over) return
      send(message)
      for (const action of behind) inOrder(action)
    }, failWith)
  }

  return {
    cancel() {
      over = true
    },
    sink: {
      message(message, mark) {
        if (over) return true
        if (waiting) {
          waiting.push(() => sink.message(message, mark))
          return true
        }
        try {
          const kept = filter(message)
          if (!(kept instanceof Promise)) return sink.message(kept, mark)
          pass(kept, (late) => sink.message(late, mark))
        } catch (error) {
          failWith(error)
        }
        return true
      },
      mark: (mark) => inOrder(() => sink.mark(mark)),
      end: () => inOrder(() => sink.end()),
      fail: (failure) => inOrder(() => sink.fail(failure)),
    },
  }
}

function filterAtOnce(message: Message, list: List, keeps: (name: string) => boolean): Message {
  const read = listIn(message, list)
  if (read === undefined) return message
  return withItems(
    read,
    list,
    [...read.texts.keys()].filter((index) => isKept(read.values[index], list, keeps)),
  )
}

async function filterInTurns(
  message: Message,
  list: List,
  keeps: (name: string) => boolean,
): Promise<Message> {
  const read = listIn(message, list)
  if (read === undefined) return message
  const pauseAfter = createPauses()
  const kept: number[] = []
  for (const [index, text] of read.texts.entries()) {
    const pause = pauseAfter(text.length)
    if (pause) await pause
    if (isKept(read.values[index], list, keeps)) kept.push(index)
  }
  return withItems(read, list, kept)
}

/** Read anew: a reader that understands the text in another way than the rules would see items that were left out. */
function listIn(message: Message, { member }: List): ReadList | undefined {
  return 'result' in message.value ? readList(message, member) : undefined
}

function isKept(item: JsonValue | undefined, { naming }: List, keeps: (name: string) => boolean): boolean {
  const name = isJsonObject(item) ? item[naming] : undefined
  return typeof name === 'string' && keeps(name)
}

/** The response with the items at these indexes. */
function withItems(
  { message, result, texts, values }: ReadList,
  { member }: List,
  kept: readonly number[],
): Message {
  if (kept.length === texts.length) return message
  const itemsText = `[${kept.map((index) => texts[index]).join(',')}]`
  const items = kept.flatMap((index) => values[index] ?? [])
  const resultText = editTopLevel(result, { set: new Map([[member, itemsText]]) })
  return {
    text: editTopLevel(message, { set: new Map([['result', resultText]]) }),
    value: { ...message.value, result: { ...result.value, [member]: items } },
  }
}
