import { type BucketMap, bucketMap, lookUp, withEntries } from '../../lib/bucket-map.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { type ApiKeyEntry, apiKeyEntries } from './entry.ts'
import { type ApiKeyRecord, allDigests } from './record.ts'

/** Index of virtual keys by digest. Immutable: pending requests use the index they started with. */
export type KeyIndex = {
  find(digest: string): ApiKeyEntry | undefined
  /** Base of the next index of the scope, retained while an index of the scope is in use. */
  readonly latest: object
}

type Indexed = { readonly records: readonly ApiKeyRecord[]; readonly entries: BucketMap<ApiKeyEntry> }

/**
 * Creates the index of a list of keys, incrementally from the latest one of the same scope: unchanged records
 * are the same objects, so that a change of one key among 100,000 is cheap.
 */
export function createKeyIndex(
  records: readonly ApiKeyRecord[],
  context: CompileContext,
  scope: string,
): KeyIndex {
  const latest = context.retained(`api key index of ${scope}`, () => ({ indexed: indexed(records) }))
  // The latest index may belong to a discarded configuration; the difference is still correct.
  latest.indexed = reindexed(records, latest.indexed)
  const { entries } = latest.indexed
  return { find: (digest) => lookUp(entries, digest), latest }
}

/**
 * Applies differences. Entries are not cached per record: a weak map of 100,000 slows every garbage
 * collection.
 */
function reindexed(records: readonly ApiKeyRecord[], before: Indexed): Indexed {
  if (records === before.records) return before
  const { lost, gained } = differences(before.records, records)
  if (lost.length > before.records.length / 2) return indexed(records)
  const changes = new Map<string, ApiKeyEntry | undefined>()
  for (const record of lost) {
    for (const digest of allDigests(record)) changes.set(digest, undefined)
  }
  for (const record of gained) {
    for (const [digest, entry] of apiKeyEntries(record)) changes.set(digest, entry)
  }
  return { records, entries: withEntries(before.entries, changes) }
}

function indexed(records: readonly ApiKeyRecord[]): Indexed {
  return { records, entries: bucketMap(records.flatMap(apiKeyEntries)) }
}

type Differences<T> = { readonly lost: readonly T[]; readonly gained: readonly T[] }

/**
 * Compares two lists by identity. A moved item is both lost and gained. Takes less than 1 ms for 100,000
 * items with a few changes.
 */
function differences<T extends object>(before: readonly T[], after: readonly T[]): Differences<T> {
  const lost: T[] = []
  const gained: T[] = []
  const shorter = Math.min(before.length, after.length)
  let at = 0
  while (at < shorter && before[at] === after[at]) at++
  let same = 0
  while (same < shorter - at && before[before.length - 1 - same] === after[after.length - 1 - same]) same++
  const [end, otherEnd] = [before.length - same, after.length - same]
  let other = at
  while (at < end || other < otherEnd) {
    if (at < end && other < otherEnd && before[at] === after[other]) {
      at++
      other++
      continue
    }
    const [skipped, added] = runOf(
      before.slice(at, Math.min(end, at + mostAhead)),
      after.slice(other, Math.min(otherEnd, other + mostAhead)),
    )
    for (let index = 0; index < skipped; index++) push(lost, before[at + index])
    for (let index = 0; index < added; index++) push(gained, after[other + index])
    at += skipped
    other += added
  }
  return { lost, gained }
}

function push<T>(list: T[], item: T | undefined): void {
  if (item !== undefined) list.push(item)
}

/** Maximum lookahead for the next common item. */
const mostAhead = 64

/**
 * Returns the number of leading items of each list before the next common item, or all items if there is
 * none.
 */
function runOf<T>(one: readonly T[], other: readonly T[]): [skipped: number, added: number] {
  for (let length = 1; length < Math.max(one.length, other.length); length++) {
    const [item, counterpart] = [one[length], other[length]]
    if (item !== undefined && item === counterpart) return [length, length]
    if (item !== undefined && item === other[0]) return [length, 0]
    if (counterpart !== undefined && counterpart === one[0]) return [0, length]
  }
  return [one.length, other.length]
}
