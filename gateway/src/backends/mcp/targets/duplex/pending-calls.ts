import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { BufferedSink } from '../buffered-sink.ts'

/** A request under way. */
export type PendingCall = {
  /** The id that the client gave it, as JSON text, so that ids of any form come back as they were sent. */
  readonly clientId: string
  readonly sink: BufferedSink
  /** Bound on the answer, in characters. */
  readonly maxResponseChars?: number | undefined
}

/** The requests under way on one wire, by the ids they have there. */
export type PendingCalls = {
  readonly size: number
  /** Adds a request and gives it an id that none had before. */
  add(call: PendingCall, request: JsonObject): number
  /** The bound on the answer to a request that is under way. */
  maxResponseCharsOf(id: number): number | undefined
  /** Takes a request out, because it is over. */
  remove(id: number): PendingCall | undefined
  removeAll(): PendingCall[]
  /** The id on the wire of the request that a response answers. */
  idOfResponse(response: JsonObject): number | undefined
  /** The id on the wire of the request that the client knows by this id. */
  idOf(clientId: string): number | undefined
  /** The request whose progress a notification reports. */
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
      // A server that could not read a request does not know its id; with one under way there is no doubt.
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
