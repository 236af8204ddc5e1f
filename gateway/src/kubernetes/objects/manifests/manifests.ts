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
import {
  type ManifestFile,
  type ManifestProblem,
  type ParsedManifest,
  type Place,
  parseManifest,
} from './parse-manifest.ts'

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

/** Reads manifests. Files whose text is unchanged since the previous call keep their objects. */
export type ReadManifests = (files: readonly ManifestFile[]) => Manifests

/** Creates a reader of manifests that parses changed files only. */
export function createManifestReader(): ReadManifests {
  let previous: ReadonlyMap<string, Parsed> = new Map()
  return (files) => {
    const parsed = new Map<string, Parsed>()
    for (const file of files) {
      const before = previous.get(file.name)
      const isSame = before !== undefined && before.text === file.text
      parsed.set(file.name, isSame ? before : { text: file.text, ...parseManifest(file) })
    }
    previous = parsed
    return collect([...parsed.values()])
  }
}

type Parsed = ParsedManifest & { readonly text: string }

/** The objects of parsed files, in the order of the files. */
export function collect(files: readonly ParsedManifest[]): Manifests {
  const collecting: Collecting = {
    objects: new Map(),
    invalid: new Map(),
    places: new Map(),
    errors: files.flatMap(({ mistakes }) => mistakes),
    warnings: [],
  }
  for (const { objects } of files) {
    for (const { outcome, file, line } of objects) add(outcome, { file, line }, collecting)
  }
  const { places, errors, warnings } = collecting
  return { objects: objectSet(collecting), places, errors, warnings }
}

type Collecting = {
  readonly objects: Map<InvalidKey, ReadObject>
  readonly invalid: Map<InvalidKey, InvalidObject>
  readonly places: Map<InvalidKey, Place>
  readonly errors: ManifestProblem[]
  readonly warnings: ManifestProblem[]
}

function add(outcome: ReadOutcome, place: Place, collecting: Collecting): void {
  const { objects, invalid, errors, warnings } = collecting
  switch (outcome.kind) {
    case 'other':
      warnings.push({ ...place, message: `${outcome.description} is not read` })
      return
    case 'unusable':
      for (const message of outcome.mistakes) errors.push({ ...place, message })
      return
    case 'object': {
      const { object } = outcome
      const key = claim(object, place, collecting)
      if (key !== undefined) objects.set(key, object)
      return
    }
    case 'invalid': {
      const key = claim(outcome.invalid, place, collecting)
      if (key !== undefined) invalid.set(key, outcome.invalid)
      return
    }
  }
}

/** The key of an object; undefined if another object has it. */
function claim(
  object: { readonly kind: ReadKind; readonly metadata: ObjectMeta },
  place: Place,
  { places, errors }: Collecting,
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

function objectSet({ objects, invalid }: Collecting): ObjectSet {
  const set = emptyObjectSet()
  for (const object of objects.values()) mapOf(set, object.kind).set(keyOf(object), object)
  return { ...set, invalid }
}

/** The map of a kind of a new set, which nothing else refers to. */
function mapOf(set: ObjectSet, kind: ReadKind): Map<string, ReadObject> {
  return set[kind] as Map<string, ReadObject>
}
