import { type FieldPath, isObject, memberOf, sameJson, withValueAt } from '../../schema-form/model/value.ts'

/** A field that both sides changed, to different values. Absent values are undefined. */
export type MergeConflict = {
  readonly path: FieldPath
  readonly base: unknown
  readonly mine: unknown
  readonly theirs: unknown
}

export type Merge = {
  /** Both changes; of conflicting fields, mine. */
  readonly value: unknown
  readonly conflicts: readonly MergeConflict[]
  /** Fields that only the other side changed. */
  readonly adopted: readonly FieldPath[]
}

/** Merges two changes of one value by field. Lists are merged as a whole. */
export function mergeValues(base: unknown, mine: unknown, theirs: unknown): Merge {
  const conflicts: MergeConflict[] = []
  const adopted: FieldPath[] = []
  const value = merged(base, mine, theirs, [])
  return { value, conflicts, adopted }

  function merged(from: unknown, own: unknown, other: unknown, path: FieldPath): unknown {
    if (sameJson(own, other) || sameJson(from, other)) return own
    if (sameJson(from, own)) {
      adopted.push(path)
      return other
    }
    if (!isObject(own) || !isObject(other) || (from !== undefined && !isObject(from))) {
      conflicts.push({ path, base: from, mine: own, theirs: other })
      return own
    }
    const names = [...new Set([...Object.keys(own), ...Object.keys(other)])]
    const entries = names.map(
      (name) =>
        [
          name,
          merged(memberOf(from, name), memberOf(own, name), memberOf(other, name), [...path, name]),
        ] as const,
    )
    return Object.fromEntries(entries.filter(([, member]) => member !== undefined))
  }
}

/** The merged value with the chosen side of each conflict. */
export function resolveMerge({ value, conflicts }: Merge, sides: readonly ('mine' | 'theirs')[]): unknown {
  return conflicts.reduce(
    (result, conflict, index) =>
      sides[index] === 'theirs' ? withValueAt(result, conflict.path, conflict.theirs) : result,
    value,
  )
}
