import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { controllerName } from '../../translate/controller-name.ts'
import type { ObjectStatus } from '../../translate/status/object-status.ts'

/** Limits of the API for entries of all controllers together. */
const maxEntries = { parents: 32, ancestors: 16 }

/**
 * The status to write: the computed one with the entries of other controllers, with the times of conditions
 * that did not change, and with fields that this controller does not write. `now` is an RFC 3339 time.
 */
export function mergeStatus(live: unknown, computed: ObjectStatus, now: string): JsonObject {
  const status = isJsonObject(live) ? live : {}
  const next = plain(computed.status)
  switch (computed.of) {
    case 'gateway':
      return {
        ...withoutFields(status, ['addresses']),
        ...next,
        conditions: withTimes(status['conditions'], next['conditions'], now),
        listeners: withTimesByName(status['listeners'], next['listeners'], now),
      }
    case 'route':
      return { ...status, parents: mergeEntries('parents', status['parents'], next['parents'], now) }
    case 'policy':
      return { ...status, ancestors: mergeEntries('ancestors', status['ancestors'], next['ancestors'], now) }
    case 'conditions':
      return { ...status, ...next, conditions: withTimes(status['conditions'], next['conditions'], now) }
  }
}

/** The status without entries of this controller; undefined if there are none. */
export function withoutOwnEntries(live: unknown): JsonObject | undefined {
  if (!isJsonObject(live)) return undefined
  for (const field of ['parents', 'ancestors'] as const) {
    const entries = objectsOf(live[field])
    if (entries.some(isOwn)) return { ...live, [field]: entries.filter((entry) => !isOwn(entry)) }
  }
  return undefined
}

type EntryField = 'parents' | 'ancestors'

/** Own entries replace their predecessors in place, so that the list changes as little as possible. */
function mergeEntries(field: EntryField, live: unknown, computed: unknown, now: string): JsonObject[] {
  const rest = objectsOf(computed)
  const merged: JsonObject[] = []
  for (const entry of objectsOf(live)) {
    if (!isOwn(entry)) {
      merged.push(entry)
      continue
    }
    const index = rest.findIndex((candidate) => isDeepStrictEqual(referenceOf(candidate), referenceOf(entry)))
    const [next] = index < 0 ? [] : rest.splice(index, 1)
    if (next !== undefined) merged.push(withEntryTimes(entry, next, now))
  }
  const added = rest.map((entry) => withEntryTimes(undefined, entry, now))
  return [...merged, ...added].slice(0, maxEntries[field])
}

function withEntryTimes(live: JsonObject | undefined, next: JsonObject, now: string): JsonObject {
  return { ...next, conditions: withTimes(live?.['conditions'], next['conditions'], now) }
}

function referenceOf(entry: JsonObject): JsonValue | undefined {
  return entry['parentRef'] ?? entry['ancestorRef']
}

function isOwn(entry: JsonObject): boolean {
  return entry['controllerName'] === controllerName
}

function withTimesByName(live: unknown, computed: unknown, now: string): JsonObject[] {
  const before = objectsOf(live)
  return objectsOf(computed).map((listener) => {
    const known = before.find(({ name }) => name === listener['name'])
    return { ...listener, conditions: withTimes(known?.['conditions'], listener['conditions'], now) }
  })
}

/** `lastTransitionTime` is that of the last change of `status`. */
function withTimes(live: unknown, computed: unknown, now: string): JsonObject[] {
  const before = objectsOf(live)
  return objectsOf(computed).map((condition) => {
    const known = before.find(({ type }) => type === condition['type'])
    const isSame = known !== undefined && known['status'] === condition['status']
    const time = isSame ? known['lastTransitionTime'] : undefined
    return { ...condition, lastTransitionTime: typeof time === 'string' ? time : now }
  })
}

function objectsOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter((item) => isJsonObject(item)) : []
}

function withoutFields(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}

/** Without undefined fields, which are absent in the API. */
function plain(value: object): JsonObject {
  const copy: unknown = JSON.parse(JSON.stringify(value))
  return isJsonObject(copy) ? copy : {}
}
