import { useCallback, useMemo, useRef, useState } from 'react'
import { keyOf } from './form-context.ts'
import { checkValue, type FieldMistake } from './model/check.ts'
import type { JsonSchema } from './model/schema.ts'
import { type FieldPath, sameJson, withValueAt } from './model/value.ts'

/** State of a form: the value, the stored value, and mistakes. Created by `useSchemaForm`. */
export type SchemaFormState = {
  readonly value: unknown
  /** The value as loaded; masks in it mark stored secrets. */
  readonly stored: unknown
  /** Whether the value differs from the loaded one. */
  readonly dirty: boolean
  readonly mistakes: readonly FieldMistake[]
  /** Sets the value at a path; undefined removes it. `[]` is the whole value. */
  set(path: FieldPath, value: unknown): void
  /** Replaces value and stored value, for another record or after a save. */
  reset(value: unknown, stored?: unknown): void
  setMistakes(mistakes: readonly FieldMistake[]): void
  setDraftMistake(path: FieldPath, message: string | undefined): void
  /** Checks the value without the server, displays the mistakes, and returns whether there are none. */
  check(schema: JsonSchema): boolean
}

/** Creates the state of a form. Members that the schema does not have are retained. */
export function useSchemaForm(initial: unknown, storedValue: unknown = initial): SchemaFormState {
  const [state, setState] = useState({ value: initial, stored: storedValue })
  const [mistakes, setMistakes] = useState<readonly FieldMistake[]>([])
  const drafts = useRef(new Map<string, FieldMistake>())
  const latest = useRef(state)
  latest.current = state

  const set = useCallback((path: FieldPath, value: unknown) => {
    // Two changes in one event both apply to the latest value.
    const next = { ...latest.current, value: withValueAt(latest.current.value, path, value) }
    latest.current = next
    setState(next)
    setMistakes((before) => withoutMistakesAt(before, path))
  }, [])
  const reset = useCallback((value: unknown, stored: unknown = value) => {
    latest.current = { value, stored }
    drafts.current.clear()
    setState(latest.current)
    setMistakes([])
  }, [])
  const setDraftMistake = useCallback((path: FieldPath, message: string | undefined) => {
    if (message === undefined) drafts.current.delete(keyOf(path))
    else drafts.current.set(keyOf(path), { path, message })
  }, [])
  const check = useCallback((schema: JsonSchema) => {
    const found = [
      ...drafts.current.values(),
      ...checkValue(latest.current.value, schema, schema.definitions ?? {}),
    ]
    setMistakes(found)
    return found.length === 0
  }, [])
  return useMemo(
    () => ({
      ...state,
      dirty: !sameJson(state.value, state.stored),
      mistakes,
      set,
      reset,
      setMistakes,
      setDraftMistake,
      check,
    }),
    [state, mistakes, set, reset, setDraftMistake, check],
  )
}

/** A changed field loses its mistakes and those of the objects around it. */
function withoutMistakesAt(mistakes: readonly FieldMistake[], path: FieldPath): readonly FieldMistake[] {
  const left = mistakes.filter(({ path: place }) => {
    const shared = Math.min(place.length, path.length)
    return !place.slice(0, shared).every((step, index) => step === path[index])
  })
  return left.length === mistakes.length ? mistakes : left
}
