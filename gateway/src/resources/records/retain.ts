import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type JsonValue } from '../../lib/json/json.ts'

/** A value as a client read it, masked and with references, and the same value as stored. */
export type ReadValue = { readonly shown: JsonValue; readonly stored: JsonValue }

/**
 * A value of a client with the stored value in place of every part that equals the one the client has read:
 * masked secrets, and references to the environment. Items of a list are recognised by their value, then by
 * their name, then by their position.
 */
export function retainStored(sent: JsonValue, { shown, stored }: ReadValue): JsonValue {
  if (isDeepStrictEqual(sent, shown)) return stored
  if (Array.isArray(sent)) {
    return Array.isArray(shown) && Array.isArray(stored) ? retainItems(sent, shown, stored) : sent
  }
  if (!isJsonObject(sent) || !isJsonObject(shown) || !isJsonObject(stored)) return sent
  return Object.fromEntries(
    Object.entries(sent).map(([name, member]) => {
      const was = Object.hasOwn(shown, name) ? shown[name] : undefined
      const own = Object.hasOwn(stored, name) ? stored[name] : undefined
      const isKnown = was !== undefined && own !== undefined
      return [name, isKnown ? retainStored(member, { shown: was, stored: own }) : member]
    }),
  )
}

function retainItems(
  sent: readonly JsonValue[],
  shown: readonly JsonValue[],
  stored: readonly JsonValue[],
): JsonValue[] {
  const places = matchItems(sent, shown)
  const ambiguous = ambiguousItems(sent, shown, stored)
  return sent.map((item, index) => {
    // The mask remains, and is refused: any choice could retain the secret of the removed item.
    if (ambiguous.size > 0 && ambiguous.has(JSON.stringify(item))) return item
    const place = places[index]
    const was = place === undefined ? undefined : shown[place]
    const own = place === undefined ? undefined : stored[place]
    return was === undefined || own === undefined ? item : retainStored(item, { shown: was, stored: own })
  })
}

/** Items that look alike, differ in what is stored, and of which some were removed. */
function ambiguousItems(
  sent: readonly JsonValue[],
  shown: readonly JsonValue[],
  stored: readonly JsonValue[],
): ReadonlySet<string> {
  if (sent.length >= shown.length) return new Set()
  const places = Map.groupBy(shown.keys(), (index) => JSON.stringify(shown[index]))
  const counts = Map.groupBy(sent, (item) => JSON.stringify(item))
  const alike = [...places].filter(([text, indexes]) => {
    const left = counts.get(text)?.length ?? 0
    return (
      left < indexes.length &&
      indexes.some((index) => !isDeepStrictEqual(stored[index], stored[indexes[0] ?? 0]))
    )
  })
  return new Set(alike.map(([text]) => text))
}

/** Index of the read item of each sent item. An item is the origin of at most one. */
function matchItems(sent: readonly JsonValue[], shown: readonly JsonValue[]): (number | undefined)[] {
  const places: (number | undefined)[] = sent.map((item, index) =>
    index < shown.length && isDeepStrictEqual(item, shown[index]) ? index : undefined,
  )
  const used = new Set(places)
  const match = (identityOf: (item: JsonValue) => string | undefined) => {
    const free = new Map<string, number[]>()
    for (const [index, item] of [...shown.entries()].reverse()) {
      const identity = used.has(index) ? undefined : identityOf(item)
      if (identity === undefined) continue
      const indexes = free.get(identity)
      if (indexes === undefined) free.set(identity, [index])
      else indexes.push(index)
    }
    for (const [index, item] of sent.entries()) {
      if (places[index] !== undefined) continue
      const place = free.get(identityOf(item) ?? '')?.pop()
      if (place === undefined) continue
      places[index] = place
      used.add(place)
    }
  }
  match((item) => JSON.stringify(item))
  match(nameOf)
  for (const [index, item] of sent.entries()) {
    if (places[index] !== undefined || used.has(index) || index >= shown.length) continue
    // A changed text is a new text, not a changed secret.
    if (isJsonObject(item)) places[index] = index
  }
  return places
}

function nameOf(item: JsonValue): string | undefined {
  if (!isJsonObject(item)) return undefined
  const name = item['name'] ?? item['id']
  return typeof name === 'string' && name !== '' ? `name ${name}` : undefined
}
