import { asGatewayError } from '../../../lib/gateway-error.ts'
import { editTopLevel } from '../../../lib/json/edit.ts'
import { isJsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { createCooperativeYield, largeListChars } from '../message/cooperative-yield.ts'
import type { ItemList } from '../message/items.ts'
import type { Message, MessageSink } from '../message/message.ts'
import { type ReadList, readList } from '../message/read-list.ts'

/** A filtering sink. After `cancel` the wrapped sink receives nothing. */
export type FilteredSink = { readonly sink: MessageSink; cancel(): void }

/**
 * Removes items from the response to a list request; items without a name are removed too. A large list is
 * filtered cooperatively, and later messages wait.
 */
export function createFilteredSink(
  sink: MessageSink,
  list: ItemList,
  permits: (name: string) => boolean,
): FilteredSink {
  let over = false
  /** Queue of later calls while a large list is filtered. */
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
    return message.text.length < largeListChars
      ? filterSync(message, list, permits)
      : filterWithYields(message, list, permits)
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
          const filtered = filter(message)
          if (!(filtered instanceof Promise)) return sink.message(filtered, mark)
          pass(filtered, (late) => sink.message(late, mark))
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

function filterSync(message: Message, list: ItemList, permits: (name: string) => boolean): Message {
  const read = listIn(message, list)
  if (read === undefined) return message
  return withItems(
    read,
    list,
    [...read.texts.keys()].filter((index) => isPermitted(read.values[index], list, permits)),
  )
}

async function filterWithYields(
  message: Message,
  list: ItemList,
  permits: (name: string) => boolean,
): Promise<Message> {
  const read = listIn(message, list)
  if (read === undefined) return message
  const pauseAfter = createCooperativeYield()
  const filtered: number[] = []
  for (const [index, text] of read.texts.entries()) {
    const pause = pauseAfter(text.length)
    if (pause) await pause
    if (isPermitted(read.values[index], list, permits)) filtered.push(index)
  }
  return withItems(read, list, filtered)
}

/** Reads the list strictly: a lenient parser of the client could otherwise see items that rules hide. */
function listIn(message: Message, { member }: ItemList): ReadList | undefined {
  return 'result' in message.value ? readList(message, member) : undefined
}

function isPermitted(
  item: JsonValue | undefined,
  { nameField: naming }: ItemList,
  permits: (name: string) => boolean,
): boolean {
  const name = isJsonObject(item) ? item[naming] : undefined
  return typeof name === 'string' && permits(name)
}

/** The response with the items at these indexes. */
function withItems(
  { message, result, texts, values }: ReadList,
  { member }: ItemList,
  filtered: readonly number[],
): Message {
  if (filtered.length === texts.length) return message
  const itemsText = `[${filtered.map((index) => texts[index]).join(',')}]`
  const items = filtered.flatMap((index) => values[index] ?? [])
  const resultText = editTopLevel(result, { set: new Map([[member, itemsText]]) })
  return {
    text: editTopLevel(message, { set: new Map([['result', resultText]]) }),
    value: { ...message.value, result: { ...result.value, [member]: items } },
  }
}
