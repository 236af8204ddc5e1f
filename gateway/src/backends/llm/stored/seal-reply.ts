import { ownerOf } from '../../../identity/owner.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { ObjectIds } from '../batches/object-ids.ts'
import { pathsOf } from '../providers/provider.ts'
import type { StreamConversion } from '../reply/stream.ts'
import { parseDataLine } from '../reply/stream-watch.ts'
import type { Attempt, Call } from '../request/call.ts'
import { filesOf } from './message-files.ts'
import type { SealedKind } from './object-kinds.ts'
import type { ResponseIds, StoredResponse } from './response-ids.ts'
import { placeOf } from './sealed-ids.ts'

/** Replaces ids of the provider in a response. */
export type IdSeal = StreamConversion & {
  /** `response` is the object in `bytes`. */
  whole(bytes: Buffer, response: JsonObject): Buffer
}

type SealingIds = { readonly responseIds: ResponseIds; readonly objectIds: ObjectIds }

/** Undefined for calls whose responses have no ids of objects. */
export function createIdSeal(
  attempt: Attempt,
  { responseIds: ids, objectIds }: SealingIds,
): IdSeal | undefined {
  const { call, translation } = attempt
  if (!call.sealsIds || call.unchanged || translation !== undefined) return undefined
  const { exchange, candidate } = attempt
  const { endpoint, reference } = call
  const { target } = candidate
  const owner = ownerOf(exchange)
  // A client finds the ids that it has sent.
  const replaced = new Map([...(call.objectIds ?? [])].map(([own, id]) => [id, own]))
  for (const [id, own] of call.ownFiles ?? []) replaced.set(id, own)
  const hasFiles =
    pathsOf(target.provider, { model: candidate.model, streaming: false }).anthropic_files !== undefined

  function storedAt(id: string): StoredResponse {
    const requestModel = exchange.facts.llm?.requestModel ?? ''
    return { id, requestModel, configuredModel: target.configuredModel, place: placeOf(target) }
  }

  function sealed(id: string): string {
    // A client finds the id that it has sent.
    return id === reference?.stored.id ? reference.text : ids.seal(storedAt(id), owner)
  }

  /** Files that code of a model has created. The client reads them by the calls of files. */
  function addFile(id: JsonValue | undefined): void {
    if (!isId(id) || replaced.has(id) || replaced.size >= maxIds) return
    const file = { ...storedAt(id), batch: undefined, inputFile: undefined }
    replaced.set(id, objectIds.seal('anthropic_files', file, owner))
  }

  function addMessage(message: JsonObject): void {
    for (const id of containersOf(message)) addId(id, 'container')
    if (hasFiles) for (const id of filesOf(message)) addFile(id)
  }

  function addId(id: JsonValue | undefined, kind: SealedKind): void {
    if (!isId(id) || replaced.has(id) || replaced.size >= maxIds) return
    replaced.set(id, ids.sealObject(id, kind, owner))
  }

  /** Calls of tools name containers, and so do citations of files in messages. */
  function addContainers(part: JsonValue | undefined): void {
    if (!isJsonObject(part)) return
    const { container_id: id, environment, annotations, content } = part
    addId(id, 'container')
    addContainers(environment)
    for (const parts of [annotations, content]) if (Array.isArray(parts)) parts.forEach(addContainers)
  }

  function addItem(item: JsonValue | undefined): void {
    if (!isJsonObject(item)) return
    addId(item['id'], 'item')
    addContainers(item)
  }

  function addResponse({ id, previous_response_id: previous, output }: JsonObject): void {
    for (const value of [id, previous])
      if (isId(value) && !replaced.has(value)) replaced.set(value, sealed(value))
    if (Array.isArray(output)) output.forEach(addItem)
  }

  function addEvent({ response, item, item_id: itemId, annotation, part }: JsonObject): void {
    if (isJsonObject(response)) addResponse(response)
    addItem(item)
    addId(itemId, 'item')
    addContainers(annotation)
    addContainers(part)
  }

  /** Reads a response, or an event of a stream. */
  function add(message: JsonObject, form: 'whole' | 'event'): void {
    if (endpoint === 'chat') for (const id of audioOf(message)) addId(id, 'audio')
    else if (endpoint === 'messages') addMessage(message)
    else if (form === 'whole') addResponse(message)
    else addEvent(message)
  }

  const announcement = announcements[endpoint] ?? never

  /** Most events are deltas of an item whose id is known. */
  function announcesId(line: string): boolean {
    if (announcement.test(line)) return true
    if (endpoint !== 'responses') return false
    const [, id] = itemId.exec(line) ?? []
    return id !== undefined && !replaced.has(id)
  }

  return {
    whole(bytes, response) {
      add(response, 'whole')
      return [...replaced].reduce((result, [from, to]) => replaceIn(result, `"${from}"`, `"${to}"`), bytes)
    },
    convert(lines) {
      const text = lines.toString()
      for (const line of text.split('\n')) {
        const event = announcesId(line) ? parseDataLine(line) : undefined
        if (event !== undefined) add(event, 'event')
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

/** Members of events with new ids. */
const announcements: Partial<Record<Call['endpoint'], RegExp>> = {
  responses: /"(?:response|item|annotation|part)" *:/,
  chat: /"audio" *:/,
  messages: /"(?:container|file_id)" *:/,
}
const never = /(?!)/
const itemId = /"item_id": ?"([\w-]{5,256})"/
const idText = /"([\w-]{5,256})"/g

/** Ids of audio in a chat completion or its chunk. */
function audioOf({ choices }: JsonObject): (JsonValue | undefined)[] {
  if (!Array.isArray(choices)) return []
  return choices.map((choice) => {
    if (!isJsonObject(choice)) return undefined
    const { message = choice['delta'] } = choice
    const audio = isJsonObject(message) ? message['audio'] : undefined
    return isJsonObject(audio) ? audio['id'] : undefined
  })
}

/** Ids of containers in a message of Anthropic or an event of its stream. */
function containersOf({ container, message, delta }: JsonObject): (JsonValue | undefined)[] {
  const nested = [message, delta].map((part) => (isJsonObject(part) ? part['container'] : undefined))
  return [container, ...nested].map((each) => (isJsonObject(each) ? each['id'] : undefined))
}

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
