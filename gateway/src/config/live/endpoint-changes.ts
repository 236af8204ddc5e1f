import type { Config } from '../schema.ts'

type NamedBackend = NonNullable<Config['backends']>[number]

/**
 * Whether two configurations that share unchanged parts differ in endpoints of backends only. Such a change
 * needs no compilation: users of a backend read its active endpoints.
 */
export function changesEndpointsOnly(before: Config, after: Config): boolean {
  if (before.backends === undefined || after.backends === undefined) return false
  if (before.backends === after.backends || before.backends.length !== after.backends.length) return false
  return (
    equalsExcept('backends', before, after) &&
    after.backends.every((backend, index) => {
      const other = before.backends?.[index]
      return other !== undefined && (other === backend || changesEndpoints(other, backend))
    })
  )
}

function changesEndpoints(before: NamedBackend, after: NamedBackend): boolean {
  if (before.endpoints === undefined || after.endpoints === undefined) return false
  return equalsExcept('endpoints', before, after)
}

/** Whether all members but one are identical. */
function equalsExcept(except: string, before: object, after: object): boolean {
  const known = new Map<string, unknown>(Object.entries(before))
  const entries = Object.entries(after)
  return (
    entries.length === known.size &&
    entries.every(([key, value]) => known.has(key) && (key === except || Object.is(known.get(key), value)))
  )
}
