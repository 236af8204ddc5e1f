import type { JsonObject, JsonValue } from '../../../lib/json/json.ts'
import type { TranslatedRequest } from './translate.ts'

/** Collects why a request cannot be translated. The first reason is the answer; the mapping goes on with placeholders. */
export type Refusals = {
  add(param: string, message: string): void
  /** Adds every field of `object` that is neither known nor null: leaving it out silently would change the request. */
  addUnknown(object: JsonObject, known: ReadonlySet<string>, path: string): void
  /** The translated body, unless something was refused. */
  result(body: JsonObject): TranslatedRequest
}

export function createRefusals(upstream: string): Refusals {
  let first: TranslatedRequest | undefined
  const refusals: Refusals = {
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

/** Both APIs take null for a field that is left out. */
export function isAbsent(value: JsonValue | undefined): value is null | undefined {
  return value === undefined || value === null
}
