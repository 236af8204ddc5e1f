import type { CompileContext } from '../../pipeline/compile-context.ts'
import { type ApiKeyEntry, type ApiKeyRecord, apiKeyEntry, recordDigest } from './record.ts'

/** Finds virtual keys by digest. Immutable: requests under way keep the one they began with. */
export type KeyIndex = {
  find(digest: string): ApiKeyEntry | undefined
  /** What the next index of the place is built from: remembered as long as an index of it is in use. */
  readonly latest: object
}

/** An index as what it has in common with an earlier one, and the little that differs. */
type Layers = {
  readonly records: readonly ApiKeyRecord[]
  readonly base: ReadonlyMap<string, ApiKeyEntry>
  readonly added: ReadonlyMap<string, ApiKeyEntry>
  readonly removed: ReadonlySet<string>
}

/** Differences that are carried along; more become part of a new base. */
const maxDifferences = 2_000

/**
 * The index of a list of keys. Built from the latest one of the same place, so that one key more or less among 100,000
 * costs next to nothing: records that a change leaves alone are the same objects.
 */
export function createKeyIndex(
  records: readonly ApiKeyRecord[],
  context: CompileContext,
  place: string,
): KeyIndex {
  const latest = context.keep(`api key index of ${place}`, (): { layers: Layers } => ({ layers: nothing }))
  latest.layers = layersOf(records, latest.layers)
  const { base, added, removed } = latest.layers
  return {
    find: (digest) => added.get(digest) ?? (removed.has(digest) ? undefined : base.get(digest)),
    latest,
  }
}

const nothing: Layers = { records: [], base: new Map(), added: new Map(), removed: new Set() }

/** Entries are not remembered by record: a weak map of 100,000 makes every garbage collection slow. */
function layersOf(records: readonly ApiKeyRecord[], before: Layers): Layers {
  const [start, end] = differingRange(before.records, records)
  const lost = before.records.slice(start, before.records.length - end)
  const gained = records.slice(start, records.length - end)
  if (lost.length + gained.length > maxDifferences) return { ...nothing, records, base: indexed(records) }
  const added = new Map(before.added)
  const removed = new Set(before.removed)
  for (const record of lost) {
    const digest = recordDigest(record)
    if (digest === undefined) continue
    added.delete(digest)
    removed.add(digest)
  }
  for (const record of gained) {
    const entry = apiKeyEntry(record)
    added.set(entry.digest, entry)
  }
  if (added.size + removed.size <= maxDifferences) return { records, base: before.base, added, removed }
  const base = new Map(before.base)
  for (const digest of removed) base.delete(digest)
  for (const [digest, entry] of added) base.set(digest, entry)
  return { ...nothing, records, base }
}

function indexed(records: readonly ApiKeyRecord[]): ReadonlyMap<string, ApiKeyEntry> {
  const entries = new Map<string, ApiKeyEntry>()
  for (const record of records) {
    const entry = apiKeyEntry(record)
    entries.set(entry.digest, entry)
  }
  return entries
}

/** How many items two lists have in common at their start and, beyond those, at their end. */
function differingRange(one: readonly object[], other: readonly object[]): [start: number, end: number] {
  const shorter = Math.min(one.length, other.length)
  let start = 0
  while (start < shorter && one[start] === other[start]) start++
  let end = 0
  while (end < shorter - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end++
  return [start, end]
}
