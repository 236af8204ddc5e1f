import type { JsonObject } from '../../../lib/json/json.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import { parseExactObject } from './exact-json.ts'

/** An event with its object, whose text is written on demand: a further translation reads the object. */
type ObjectEvent = { event?: string; json: JsonObject; readonly data: string }

/** A prototype, because a function of each event would cost more than its text. */
const objectEvent: ObjectEvent = {
  json: {},
  get data() {
    return JSON.stringify(this.json)
  },
}

/** An event of an API that is mostly translated further. */
export function createObjectEvent(event: string, json: JsonObject): SseEvent {
  const created: ObjectEvent = Object.create(objectEvent)
  created.event = event
  created.json = json
  return created
}

/** The object of an event, with exact numbers; undefined for other data. */
export function objectOf(event: SseEvent | { readonly json: JsonObject }): JsonObject | undefined {
  return 'json' in event ? event.json : parseExactObject(event.data)
}
