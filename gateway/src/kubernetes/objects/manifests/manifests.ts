import { shareStructure } from '../../../config/live/structural-share.ts'
import type { YieldPoint } from '../../../lib/scheduling/yielding.ts'
import type { ReadKind } from '../kinds.ts'
import { keyOf, type ObjectMeta } from '../meta.ts'
import {
  emptyObjectSet,
  type InvalidKey,
  type InvalidObject,
  type ObjectSet,
  type ReadObject,
} from '../object-set.ts'
import type { ReadOutcome } from '../read-object.ts'
import type { ManifestFile, ManifestProblem, ParsedManifest, Place } from './parse-manifest.ts'

/** Objects of manifests. */
export type Manifests = {
  readonly objects: ObjectSet
  /** Places of the objects, by `<kind>/<key>`. */
  readonly places: ReadonlyMap<InvalidKey, Place>
  /** Reasons why the manifests must not be used: an object of them may be missing. */
  readonly errors: readonly ManifestProblem[]
  /** Objects that are not read. */
  readonly warnings: readonly ManifestProblem[]
}

/** Reads manifests. Unchanged objects are the same as in the previous call. One call at a time. */
export type ReadManifests = (files: readonly ManifestFile[]) => Promise<Manifests>

export type ManifestReaderOptions = {
  /** `parseManifest`, on another thread if the file is large. */
  parse(file: ManifestFile): ParsedManifest | Promise<ParsedManifest>
  yieldPoint: YieldPoint
}

/** Creates a reader of manifests that parses changed files only. */
export function createManifestReader({ parse, yieldPoint }: ManifestReaderOptions): ReadManifests {
  let previous: ReadonlyMap<string, Parsed> = new Map()
  let known: Collected = emptyCollected()
  return async (files) => {
    const parsed = new Map<string, Parsed>()
    for (const file of files) {
      const before = previous.get(file.name)
      const isSame = before !== undefined && before.text === file.text
      parsed.set(file.name, isSame ? before : { text: file.text, ...(await parse(file)) })
      const pause = yieldPoint()
      if (pause) await pause
    }
    const next = collect([...parsed.values()])
    await share(known.objects, next.objects, yieldPoint)
    await share(known.invalid, next.invalid, yieldPoint)
    previous = parsed
    known = next
    const { places, errors, warnings } = next
    return { objects: objectSet(next), places, errors, warnings }
  }
}

type Parsed = ParsedManifest & { readonly text: string }

type Collected = {
  readonly objects: Map<InvalidKey, ReadObject>
  readonly invalid: Map<InvalidKey, InvalidObject>
  readonly places: Map<InvalidKey, Place>
  readonly errors: ManifestProblem[]
  readonly warnings: ManifestProblem[]
}

function emptyCollected(): Collected {
  return { objects: new Map(), invalid: new Map(), places: new Map(), errors: [], warnings: [] }
}

/** The objects of parsed files, in the order of the files. */
function collect(files: readonly ParsedManifest[]): Collected {
  const collected = emptyCollected()
  for (const { objects, mistakes } of files) {
    collected.errors.push(...mistakes)
    for (const { outcome, file, line } of objects) add(outcome, { file, line }, collected)
  }
  collected.errors.sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1))
  return collected
}

function add(outcome: ReadOutcome, place: Place, collected: Collected): void {
  const { objects, invalid, errors, warnings } = collected
  switch (outcome.kind) {
    case 'other':
      warnings.push({ ...place, message: `${outcome.description} is not read` })
      return
    case 'unusable':
      for (const message of outcome.mistakes) errors.push({ ...place, message })
      return
    case 'object': {
      const { object } = outcome
      const key = claim(object, place, collected)
      if (key !== undefined) objects.set(key, object)
      return
    }
    case 'invalid': {
      const key = claim(outcome.invalid, place, collected)
      if (key !== undefined) invalid.set(key, outcome.invalid)
      return
    }
  }
}

/** The key of an object; undefined if another object has it. */
function claim(
  object: { readonly kind: ReadKind; readonly metadata: ObjectMeta },
  place: Place,
  { places, errors }: Collected,
): InvalidKey | undefined {
  const key = `${object.kind}/${keyOf(object)}`
  const first = places.get(key)
  if (first === undefined) {
    places.set(key, place)
    return key
  }
  errors.push({ ...place, message: `${key} must be unique: it is in ${first.file}:${first.line} too` })
  return undefined
}

/** Replaces objects by equal previous ones: translations find changes by identity. */
async function share<T>(
  previous: ReadonlyMap<InvalidKey, T>,
  next: Map<InvalidKey, T>,
  yieldPoint: YieldPoint,
): Promise<void> {
  for (const [key, object] of next) {
    const before = previous.get(key)
    if (before === undefined || before === object) continue
    next.set(key, shareStructure(before, object))
    const pause = yieldPoint()
    if (pause) await pause
  }
}

function objectSet({ objects, invalid }: Collected): ObjectSet {
  const set = emptyObjectSet()
  for (const object of objects.values()) mapOf(set, object.kind).set(keyOf(object), object)
  return { ...set, invalid }
}

/** The map of a kind of a new set, which nothing else refers to. */
function mapOf(set: ObjectSet, kind: ReadKind): Map<string, ReadObject> {
  return set[kind] as Map<string, ReadObject>
}
