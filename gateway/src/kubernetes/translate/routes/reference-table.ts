import type { BackendReference } from '../../objects/gateway-api.ts'
import { gatewayApiGroup } from '../../objects/kinds.ts'
import type { References } from '../backends/references.ts'
import type { BackendResolution } from '../plan.ts'
import type { AttachingRoute } from './attachment/attachment.ts'
import type { Unresolved } from './route-status.ts'

/** A distinct reference of routes, with its result in the last pass that needed it. */
type Entry = {
  readonly resolve: () => BackendResolution
  pass: number
  result: BackendResolution
}

/** The references of a route with their results, in order of their use. */
export type Resolutions = {
  readonly route: AttachingRoute
  readonly entries: readonly Entry[]
  readonly results: readonly BackendResolution[]
  readonly unresolved: readonly Unresolved[]
}

type OpenResolutions = Resolutions & {
  readonly entries: Entry[]
  readonly results: BackendResolution[]
  readonly unresolved: Unresolved[]
}

/** Resolves each distinct reference once in a pass, however many routes have it. */
export type ReferenceTable = {
  beginPass(references: References): void
  resolutionsOf(route: AttachingRoute): OpenResolutions
  /** Resolves a reference of a route at a path, and records it. */
  resolve(resolutions: OpenResolutions, reference: BackendReference, at: string): BackendResolution
  /** Whether every reference has an equal result in this pass. */
  areCurrent(resolutions: Resolutions): boolean
}

/** Unused entries that a table may have beyond the used ones. */
const maxUnused = 1_000

export function createReferenceTable(): ReferenceTable {
  const entries = new Map<string, Entry>()
  let pass = 0
  let used = 0
  let references: References | undefined

  function resultOf(entry: Entry): BackendResolution {
    if (entry.pass === pass) return entry.result
    const result = entry.resolve()
    if (!areEqual(entry.result, result)) entry.result = result
    entry.pass = pass
    used += 1
    return entry.result
  }

  function entryOf(reference: BackendReference, route: AttachingRoute): Entry {
    const namespace = route.metadata.namespace ?? ''
    const { group = '', kind = '', name, port = '' } = reference
    const target = `${group} ${kind} ${reference.namespace ?? ''} ${name} ${port}`
    const identity = `${route.kind} ${namespace} ${target}`
    const known = entries.get(identity)
    if (known !== undefined) return known
    const from = { group: gatewayApiGroup, kind: route.kind, namespace }
    const resolve = () => {
      if (references === undefined) throw new Error('references are resolved in a pass')
      return references.backend(reference, from)
    }
    const created = { resolve, pass, result: resolve() }
    used += 1
    entries.set(identity, created)
    return created
  }

  return {
    beginPass(now) {
      if (entries.size > 2 * used + maxUnused) {
        for (const [identity, entry] of entries) if (entry.pass !== pass) entries.delete(identity)
      }
      references = now
      pass += 1
      used = 0
    },
    resolutionsOf: (route) => ({ route, entries: [], results: [], unresolved: [] }),
    resolve({ route, entries: used, results, unresolved }, reference, at) {
      const entry = entryOf(reference, route)
      const result = resultOf(entry)
      used.push(entry)
      results.push(result)
      if (result.kind === 'unresolved')
        unresolved.push({ reason: result.reason, message: `${at}: ${result.message}` })
      return result
    },
    areCurrent: ({ entries: used, results }) =>
      used.every((entry, index) => resultOf(entry) === results[index]),
  }
}

function areEqual(one: BackendResolution, other: BackendResolution): boolean {
  if (one === other) return true
  if (one.kind === 'resolved')
    return (
      other.kind === 'resolved' &&
      one.name === other.name &&
      one.traffic === other.traffic &&
      one.isAgent === other.isAgent
    )
  return other.kind === 'unresolved' && one.reason === other.reason && one.message === other.message
}
