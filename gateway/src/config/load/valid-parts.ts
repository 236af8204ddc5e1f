import { type Checked, check } from '../../schema/check.ts'
import type { Schema } from '../../schema/dsl.ts'
import type { Path } from '../../schema/path.ts'

/** The valid part of a value with mistakes, with the original paths of its content. */
export type ValidParts<T> = {
  value: T
  /** Translates a path of `value` to the path in the original value; removed list items shift indexes. */
  written(path: Path): Path
}

/** A value without mistakes. */
export function wholeValue<T>(value: T): ValidParts<T> {
  return { value, written: (path) => path }
}

/** Bound on rounds of removal: a removal can make the parent incomplete, which is removed next. */
const maxPrunings = 20

/**
 * Removes the parts with mistakes from a copy of `value` until the rest is valid; undefined if nothing valid
 * remains. `first` is the result of checking the whole value.
 */
export function checkValidParts<T>(
  schema: Schema<T>,
  value: unknown,
  first: Checked<T>,
): ValidParts<T> | undefined {
  const copy = structuredClone(value)
  /** Original index of each remaining item, for lists that lost some. */
  const indexes = new Map<unknown, number[]>()
  let checked = first
  for (let round = 0; round < maxPrunings && checked.kind === 'mistakes'; round++) {
    const removals = checked.mistakes.flatMap(({ path }) => removalOf(copy, path) ?? [])
    remove(removals, indexes)
    checked = check(schema, copy)
  }
  if (checked.kind !== 'valid') return undefined
  return { value: checked.value, written: (path) => writtenPath(copy, path, indexes) }
}

type Removal = { holder: object; key: string | number }

/** The innermost part on the path that is present. */
function removalOf(root: unknown, path: Path): Removal | undefined {
  const steps = [root]
  for (const step of path) steps.push(memberOf(steps.at(-1), step))
  for (let length = path.length; length > 0; length--) {
    const holder = steps[length - 1]
    const key = path[length - 1]
    if (typeof holder !== 'object' || holder === null || key === undefined) continue
    if (Object.hasOwn(holder, key)) return { holder, key }
  }
  return undefined
}

function remove(removals: readonly Removal[], indexes: Map<unknown, number[]>): void {
  const ofLists = new Map<unknown[], Set<number>>()
  for (const { holder, key } of removals) {
    if (!Array.isArray(holder)) Reflect.deleteProperty(holder, key)
    else ofLists.set(holder, (ofLists.get(holder) ?? new Set()).add(Number(key)))
  }
  for (const [list, removed] of ofLists) {
    const before = indexes.get(list) ?? list.map((_, index) => index)
    indexes.set(
      list,
      before.filter((_, index) => !removed.has(index)),
    )
    list.splice(0, list.length, ...list.filter((_, index) => !removed.has(index)))
  }
}

function writtenPath(root: unknown, path: Path, indexes: ReadonlyMap<unknown, number[]>): Path {
  let here = root
  return path.map((step) => {
    const holder = here
    here = memberOf(here, step)
    return typeof step === 'number' ? (indexes.get(holder)?.[step] ?? step) : step
  })
}

function memberOf(holder: unknown, step: string | number): unknown {
  if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, step)) return undefined
  return Reflect.get(holder, step)
}
