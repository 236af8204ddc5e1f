import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { BufferedSink } from '../buffered-sink.ts'

/** A pending request. */
export type PendingCall = {
  /** Id of the client as JSON text, so that responses contain it unchanged. */
  readonly clientId: string
  readonly sink: BufferedSink
  /** Maximum response size in characters. */
  readonly maxResponseChars?: number | undefined
}

/** Pending requests of one wire, by their wire ids. */
export type PendingCalls = {
  readonly size: number
  /** Adds a request; returns its new unique id. */
  add(call: PendingCall, request: JsonObject): number
  /** Maximum response size of a pending request. */
  maxResponseCharsOf(id: number): number | undefined
  /** Removes a completed request. */
  remove(id: number): PendingCall | undefined
  removeAll(): PendingCall[]
  /** Wire id of the request of a response. */
  idOfResponse(response: JsonObject): number | undefined
  /** Wire id of the request with this client id. */
  idOf(clientId: string): number | undefined
  /** Sink of the request of a progress notification. */
  sinkOfProgress(notification: JsonObject): BufferedSink | undefined
  onlySink(): BufferedSink | undefined
  latestSink(): BufferedSink | undefined
}

type Entry = PendingCall & { progressToken: JsonValue | undefined }

export function createPendingCalls(): PendingCalls {
  const entries = new Map<number, Entry>()
  let lastId = 0

  return {
    get size() {
      return entries.size
    },
    maxResponseCharsOf: (id) => entries.get(id)?.maxResponseChars,
    add(call, request) {
      lastId += 1
      entries.set(lastId, { ...call, progressToken: progressTokenOf(request) })
      return lastId
    },
    remove(id) {
      const entry = entries.get(id)
      entries.delete(id)
      return entry
    },
    removeAll() {
      const all = [...entries.values()]
      entries.clear()
      return all
    },
    idOfResponse({ id, error }) {
      if (typeof id === 'number') return id
      // A parse error response has no id; with a single pending request it is unambiguous.
      const unread = id === null && error !== undefined
      return unread && entries.size === 1 ? entries.keys().next().value : undefined
    },
    idOf(clientId) {
      for (const [id, entry] of entries) if (entry.clientId === clientId) return id
      return undefined
    },
    sinkOfProgress({ method, params }) {
      if (method !== 'notifications/progress' || !isJsonObject(params)) return undefined
      const token = params['progressToken']
      if (token === undefined) return undefined
      for (const { progressToken, sink: outlet } of entries.values())
        if (progressToken === token) return outlet
      return undefined
    },
    onlySink: () => (entries.size === 1 ? entries.values().next().value?.sink : undefined),
    latestSink: () => [...entries.values()].at(-1)?.sink,
  }
}

function progressTokenOf({ params }: JsonObject): JsonValue | undefined {
  const meta = isJsonObject(params) ? params['_meta'] : undefined
  return isJsonObject(meta) ? meta['progressToken'] : undefined
}
