import { compileCheckedCel } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import type { Facts } from '../../pipeline/exchange.ts'
import { cel, type Infer, object } from '../../schema/dsl.ts'
import type { Choosable } from '../choice.ts'

/** Variables of `sessionAffinity.source`. */
export const affinityRoots: ReadonlySet<string> = new Set([
  ...['now', 'request', 'source', 'destination', 'jwt', 'basicAuth', 'apiKey', 'metadata'],
])

/** `sessionAffinity` of a place whose expressions have these variables. */
export function affinitySchemaOf(roots: readonly string[], sourceDoc: string, doc: string) {
  return object(
    { source: cel({ doc: sourceDoc, example: 'request.headers["x-session-id"]' }, [...roots]) },
    { doc },
  )
}

/** `sessionAffinity` of a backend. */
export const sessionAffinitySchema = affinitySchemaOf(
  [...affinityRoots],
  'Expression of a text or bytes. Requests of the same value go to the same healthy endpoint. Without a value, or after a failed evaluation, the weights decide.',
  'Sends requests of a session to one endpoint of the backend, without state: a change of the endpoints moves few sessions. Valid for backends with `endpoints`, on routes.',
)

export type SessionAffinityConfig = Infer<typeof sessionAffinitySchema>

/** Compiles the digest of the session of a request; undefined without a session. */
export function compileAffinity(
  { source }: SessionAffinityConfig,
  roots: ReadonlySet<string> = affinityRoots,
): (facts: Facts) => number | undefined {
  const program = compileCheckedCel(source, roots)
  return (facts) => {
    try {
      const value = program.evaluate(facts)
      if (typeof value !== 'string' && !(value instanceof Uint8Array)) return undefined
      return value.length === 0 ? undefined : digestOf(value)
    } catch (error) {
      if (error instanceof CelEvaluationError) return undefined
      throw error
    }
  }
}

/**
 * The item of a session by weighted rendezvous hashing: a removed or ejected item moves only its own
 * sessions. `digests` are those of the items. Undefined if all are ejected.
 */
export function chooseSticky<C extends Choosable>(
  items: readonly C[],
  digests: readonly number[],
  session: number,
): C | undefined {
  let best: C | undefined
  let bestScore = Number.NEGATIVE_INFINITY
  items.forEach((item, index) => {
    if (item.weight <= 0 || item.health?.isEjected() === true) return
    const score = rendezvousScore(session, digests[index] ?? 0) / item.weight
    if (score <= bestScore) return
    best = item
    bestScore = score
  })
  return best
}

/**
 * Score of an item of weight 1 for a session, a finite negative number. The item with the highest one serves.
 */
export function rendezvousScore(session: number, digest: number): number {
  // In (0, 1): the logarithm is finite and negative.
  return Math.log((mix(session ^ digest) + 0.5) / 2 ** 32)
}

/** FNV-1a of bytes or of UTF-16 units, with a final mix. */
export function digestOf(value: string | Uint8Array): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < value.length; index += 1) {
    const unit = typeof value === 'string' ? value.charCodeAt(index) : (value[index] ?? 0)
    hash = Math.imul(hash ^ unit, 0x01000193)
  }
  return mix(hash)
}

/** The finalizer of MurmurHash3: each bit of the input changes half of the output. */
function mix(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
