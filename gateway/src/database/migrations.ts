/**
 * A schema by its migrations, in order, from version 1. A released migration never changes. Schemas with
 * tables of versions of their own evolve apart, also in one database.
 */
export type Migrations = {
  /** Table of the applied versions. */
  readonly table: string
  readonly steps: readonly string[]
}

/** Refusal of a database with a newer schema, which this version could damage. */
export function tooNew(version: number, { steps }: Migrations): string | undefined {
  if (version <= steps.length) return undefined
  return `its schema has version ${version}, but this version of Tollgate knows ${steps.length} at most: use a newer Tollgate`
}
