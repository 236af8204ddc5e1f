import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'

/** Events of responses that the client receives after their check. */
export type HeldResponses = {
  readonly isHolding: boolean
  start(id: string): void
  /** Withholds an event, and collects its texts. False if the withheld events exceed the limit. */
  add(event: JsonObject, bytes: Buffer): boolean
  /** The items of a response with all texts that its events had. */
  itemsOf(response: JsonObject): JsonValue[]
  /** Ends a response. Its events are dropped if it was rejected. Returns those that may be sent. */
  finish(id: string, isRejected: boolean): Buffer[]
}

/** A response in progress. */
type HeldResponse = {
  readonly itemIds: Set<string>
  /** Texts by item, part and kind. */
  readonly texts: Map<string, { readonly isCall: boolean; deltas: string; whole: string }>
}

type HeldEvent = {
  readonly bytes: Buffer
  readonly response: string | undefined
  readonly item: string | undefined
}

/** Creates the queue of a connection: events leave it in order, when no response is in progress. */
export function createHeldResponses(maxBytes: number): HeldResponses {
  const responses = new Map<string, HeldResponse>()
  const rejected = new Set<string>()
  const rejectedItems = new Set<string>()
  let queue: HeldEvent[] = []
  let queuedBytes = 0

  const mayPass = ({ response, item }: HeldEvent) =>
    (response === undefined || !rejected.has(response)) && (item === undefined || !rejectedItems.has(item))

  return {
    get isHolding() {
      return responses.size > 0
    },
    start(id) {
      responses.set(id, { itemIds: new Set(), texts: new Map() })
    },
    add(event, bytes) {
      const held = { bytes, response: responseIdOf(event), item: itemIdOf(event) }
      queue.push(held)
      queuedBytes += bytes.length
      const response = held.response === undefined ? undefined : responses.get(held.response)
      if (response !== undefined) {
        if (held.item !== undefined) response.itemIds.add(held.item)
        collect(event, response)
      }
      return queuedBytes <= maxBytes
    },
    itemsOf(response) {
      const { id, output } = response
      const items = Array.isArray(output) ? [...output] : []
      const texts = typeof id === 'string' ? responses.get(id)?.texts : undefined
      const known = new Set<string>()
      for (const item of items) collectRead(item, known)
      for (const { isCall, deltas, whole } of texts?.values() ?? []) {
        for (const text of new Set([deltas, whole])) {
          if (text !== '' && !known.has(text)) items.push(isCall ? callWith(text) : messageWith(text))
        }
      }
      return items
    },
    finish(id, isRejected) {
      if (isRejected) {
        rejected.add(id)
        for (const item of responses.get(id)?.itemIds ?? []) rejectedItems.add(item)
      }
      responses.delete(id)
      if (responses.size > 0) return []
      const released = queue.filter(mayPass).map(({ bytes }) => bytes)
      queue = []
      queuedBytes = 0
      rejected.clear()
      rejectedItems.clear()
      return released
    },
  }
}

function responseIdOf({ response_id: id, response }: JsonObject): string | undefined {
  const own = isJsonObject(response) ? response['id'] : id
  return typeof own === 'string' ? own : undefined
}

function itemIdOf({ item_id: id, item }: JsonObject): string | undefined {
  const own = isJsonObject(item) ? item['id'] : id
  return typeof own === 'string' ? own : undefined
}

/** Collects the texts of an event: additions, and repetitions of the whole. */
function collect(event: JsonObject, { texts }: HeldResponse): void {
  const { type, delta, content_index: part = 0 } = event
  if (typeof type !== 'string' || type.endsWith('audio.delta')) return
  const isCall = type.includes('function_call_arguments') || type.includes('mcp_call_arguments')
  const kind = type.replace(/\.(?:delta|done)$/, '')
  const key = `${itemIdOf(event) ?? ''}/${String(part)}/${kind}`
  const whole = [event['text'], event['transcript'], event['arguments']].find(
    (text) => typeof text === 'string',
  )
  const addition = typeof delta === 'string' && type.endsWith('.delta') ? delta : ''
  if (addition === '' && whole === undefined) return
  const known = texts.get(key) ?? { isCall, deltas: '', whole: '' }
  known.deltas += addition
  if (typeof whole === 'string') known.whole = whole
  texts.set(key, known)
}

/** Collects the texts that guards read in an item. */
function collectRead(item: JsonValue, into: Set<string>): void {
  if (!isJsonObject(item)) return
  const { content, arguments: input } = item
  if (typeof input === 'string') into.add(input)
  for (const part of Array.isArray(content) ? content : []) {
    if (!isJsonObject(part)) continue
    const text = part['type'] === 'output_audio' ? part['transcript'] : part['text']
    if (typeof text === 'string') into.add(text)
  }
}

function messageWith(text: string): JsonObject {
  return { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }
}

function callWith(text: string): JsonObject {
  return { type: 'function_call', name: '', call_id: '', arguments: text }
}
