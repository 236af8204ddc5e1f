import type { JsonObject, JsonValue } from '../../../lib/json/json.ts'
import type { TranslatedRequest } from './translate.ts'

/**
 * Collects reasons against a translation. The first one is reported; the mapping continues with placeholders.
 */
export type Refusals = {
  /** The result may have blocks of audio: messages are a step before another API. */
  readonly audio: boolean
  add(param: string, message: string): void
  /**
   * Adds all fields of `object` that are neither known nor null, because an omitted field would change the
   * request.
   */
  addUnknown(object: JsonObject, known: ReadonlySet<string>, path: string): void
  /** The translated body, or the first refusal. */
  result(body: JsonObject): TranslatedRequest
}

export function createRefusals(upstream: string, { audio = false } = {}): Refusals {
  let first: TranslatedRequest | undefined
  const refusals: Refusals = {
    audio,
    add(param, message) {
      first ??= { kind: 'unsupported', param, message: `${param}: ${message}` }
    },
    addUnknown(object, known, path) {
      for (const name in object) {
        if (known.has(name) || isAbsent(object[name])) continue
        refusals.add(path === '' ? name : `${path}.${name}`, `cannot be translated for ${upstream}`)
      }
    },
    result: (body) => first ?? { kind: 'body', body },
  }
  return refusals
}

/** Both APIs treat null as absent. */
export function isAbsent(value: JsonValue | undefined): value is null | undefined {
  return value === undefined || value === null
}
