import { createContext, useContext } from 'react'
import type { Definitions } from './model/schema.ts'
import type { FieldPath } from './model/value.ts'

/** What the parts of a form share. */
export type FormContext = {
  readonly definitions: Definitions
  readonly readOnly: boolean
  /** Prefix of the ids of all inputs. */
  readonly id: string
  /** Stored value of the record, for secrets that are retained. */
  readonly stored: unknown
  /** Sets the value at a path; undefined removes it. */
  set(path: FieldPath, value: unknown): void
  /** Messages of mistakes at exactly this path. */
  mistakesAt(path: FieldPath): readonly string[]
  /** Number of mistakes below a path. */
  mistakesBelow(path: FieldPath): number
  /** Reports text that has no value yet, such as incomplete JSON; undefined clears it. */
  setDraftMistake(path: FieldPath, message: string | undefined): void
}

const context = createContext<FormContext | undefined>(undefined)

export const FormProvider = context.Provider

export function useFormContext(): FormContext {
  const form = useContext(context)
  if (form === undefined) throw new Error('a field must be inside of a SchemaForm')
  return form
}

/** Id of the input at a path. */
export function fieldId({ id }: FormContext, path: FieldPath): string {
  return `${id}-${keyOf(path)}`
}

/** A path as a text that is unique among paths. */
export function keyOf(path: FieldPath): string {
  return path.map((step) => encodeURIComponent(step)).join('/')
}
