import { ownerOf } from '../../../identity/owner.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { StreamConversion } from '../reply/stream.ts'
import { parseDataLine } from '../reply/stream-watch.ts'
import type { Attempt } from '../request/call.ts'
import { placeOf, type ResponseIds } from './response-ids.ts'

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
  let replacements: readonly Replacement[] | undefined

  function sealed(id: string): string {
    // A client finds the id that it has sent.
    if (id === reference?.stored.id) return reference.text
    const requestModel = exchange.facts.llm?.requestModel ?? ''
    const stored = { id, requestModel, configuredModel: target.configuredModel, place: placeOf(target) }
    return ids.seal(stored, ownerOf(exchange))
  }

  function replacementsFor({ id, previous_response_id: previous }: JsonObject): readonly Replacement[] {
    const found = new Set([id, previous].filter((value) => typeof value === 'string' && isId(value)))
    return [...found].map((value) => ({ from: `"${value}"`, to: `"${sealed(String(value))}"` }))
  }

  return {
    whole: (bytes, response) =>
      replacementsFor(response).reduce((result, { from, to }) => replaceIn(result, from, to), bytes),
    convert(lines) {
      const text = lines.toString()
      replacements ??= responseIn(text, replacementsFor)
      return (replacements ?? []).reduce((result, { from, to }) => result.replaceAll(from, to), text)
    },
    end: () => '',
  }
}

type Replacement = { readonly from: string; readonly to: string }

/** Ids of other forms are not replaced, because the search could find other texts. */
function isId(value: unknown): boolean {
  return typeof value === 'string' && /^[\w-]{5,256}$/.test(value)
}

/** The first event contains the response. */
function responseIn<T>(lines: string, read: (response: JsonObject) => T): T | undefined {
  for (const line of lines.split('\n')) {
    const { response } = parseDataLine(line) ?? {}
    if (isJsonObject(response)) return read(response)
  }
  return undefined
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
