import { ownerOf } from '../../../identity/owner.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { StreamConversion } from '../reply/stream.ts'
import { parseDataLine } from '../reply/stream-watch.ts'
import type { Attempt } from '../request/call.ts'
import type { ResponseIds } from './response-ids.ts'
import { placeOf } from './sealed-ids.ts'

/** Replaces ids of the provider in a response. */
export type IdSeal = StreamConversion & {
  /** `response` is the object in `bytes`. */
  whole(bytes: Buffer, response: JsonObject): Buffer
}

/** Undefined for calls without stored responses. */
export function createIdSeal(attempt: Attempt, ids: ResponseIds): IdSeal | undefined {
  const { call, translation } = attempt
  if (call.endpoint !== 'responses' || call.unchanged || translation !== undefined) return undefined
  const { exchange, candidate } = attempt
  const { reference } = call
  const { target } = candidate
  const owner = ownerOf(exchange)
  const replaced = new Map<string, string>()

  function sealed(id: string): string {
    // A client finds the id that it has sent.
    if (id === reference?.stored.id) return reference.text
    const requestModel = exchange.facts.llm?.requestModel ?? ''
    const stored = { id, requestModel, configuredModel: target.configuredModel, place: placeOf(target) }
    return ids.seal(stored, owner)
  }

  function addItemId(id: JsonValue | undefined): void {
    if (!isId(id) || replaced.has(id) || replaced.size >= maxIds) return
    replaced.set(id, ids.sealItem(id, owner))
  }

  function addItem(item: JsonValue | undefined): void {
    if (isJsonObject(item)) addItemId(item['id'])
  }

  function addResponse({ id, previous_response_id: previous, output }: JsonObject): void {
    for (const value of [id, previous])
      if (isId(value) && !replaced.has(value)) replaced.set(value, sealed(value))
    if (Array.isArray(output)) output.forEach(addItem)
  }

  function addEvent({ response, item, item_id: itemId }: JsonObject): void {
    if (isJsonObject(response)) addResponse(response)
    addItem(item)
    addItemId(itemId)
  }

  /** Most events are deltas of an item whose id is known. */
  function announcesId(line: string): boolean {
    if (announcement.test(line)) return true
    const [, id] = itemId.exec(line) ?? []
    return id !== undefined && !replaced.has(id)
  }

  return {
    whole(bytes, response) {
      addResponse(response)
      return [...replaced].reduce((result, [from, to]) => replaceIn(result, `"${from}"`, `"${to}"`), bytes)
    },
    convert(lines) {
      const text = lines.toString()
      for (const line of text.split('\n')) {
        const event = announcesId(line) ? parseDataLine(line) : undefined
        if (event !== undefined) addEvent(event)
      }
      if (replaced.size === 0) return text
      return text.replace(idText, (whole, id: string) => {
        const own = replaced.get(id)
        return own === undefined ? whole : `"${own}"`
      })
    },
    end: () => '',
  }
}

/** Most ids of a response. */
const maxIds = 10_000

const announcement = /"(?:response|item)":/
const itemId = /"item_id": ?"([\w-]{5,256})"/
const idText = /"([\w-]{5,256})"/g

/** Ids of other forms are not replaced, because the search could find other texts. */
function isId(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]{5,256}$/.test(value)
}

/** Replaces a JSON string. It cannot occur inside another one, where its quotes would be escaped. */
function replaceIn(bytes: Buffer, from: string, to: string): Buffer {
  const pieces: Buffer[] = []
  const replacement = Buffer.from(to)
  let copied = 0
  for (let hit = bytes.indexOf(from); hit !== -1; hit = bytes.indexOf(from, copied)) {
    pieces.push(bytes.subarray(copied, hit), replacement)
    copied = hit + from.length
  }
  return pieces.length === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(copied)])
}
