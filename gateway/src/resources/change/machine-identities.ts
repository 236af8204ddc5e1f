import { findProviderKind } from '../../backends/llm/providers/providers.ts'
import { ambientAuth } from '../../policies/guardrails/kinds/ambient-auth.ts'
import type { Path } from '../../schema/path.ts'
import { childShapes, type Shape } from '../../schema/shape.ts'
import { machineIdentityOf } from '../../upstream/credentials/machine-identity/machine-identity.ts'
import { isTree } from '../hybrid/overlay.ts'

/** A part of a configuration that uses an identity of this machine. */
export type IdentityPart = {
  readonly path: Path
  /** Credential and destination: the innermost item of a list or object with a host, else the part itself. */
  readonly owner: unknown
}

type Place = {
  readonly path: Path
  readonly shapes: readonly Shape[]
  readonly owner: unknown
  /** A credential that is configured further out, and replaces the one that a provider implies. */
  readonly hasCredential: boolean
}

/** Finds the parts of a value, which need not be valid, that use an identity of this machine. */
export function machineIdentitiesIn(value: unknown, shapes: readonly Shape[]): Generator<IdentityPart> {
  return partsIn(value, { path: [], shapes, owner: undefined, hasCredential: false })
}

function* partsIn(value: unknown, place: Place): Generator<IdentityPart> {
  const { path, shapes, owner } = place
  // Free JSON is not configuration; virtual keys have no destinations, and there are many.
  if (path.at(-1) === 'keys' || (shapes.length > 0 && shapes.every(({ kind }) => kind === 'any'))) return
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* partsIn(item, { ...below(place, index), owner: item })
    return
  }
  if (!isTree(value)) return
  if (hasField(shapes, 'passthrough', 'jwtSign') && machineIdentityOf(value) !== undefined) {
    yield { path, owner: owner ?? value }
    return
  }
  const ownsCredential = place.hasCredential || hasCredential(value)
  const ownerBelow = 'host' in value || 'backend' in value ? value : owner
  if (hasField(shapes, 'provider', 'params') || hasField(shapes, 'provider', 'hostOverride')) {
    if (!ownsCredential && impliesIdentity(value['provider']))
      yield { path: [...path, 'provider'], owner: ownerBelow ?? value }
  }
  for (const [key, member] of Object.entries(value)) {
    if (isGuardWithIdentity(key, member) && hasField(shapes, key))
      yield { path: [...path, key], owner: ownerBelow ?? value }
    // Policies beside `ai` apply to each of its providers.
    const hasCredential = (key === 'ai' || key === 'groups' || key === 'providers') && ownsCredential
    yield* partsIn(member, { ...below(place, key), owner: ownerBelow, hasCredential })
  }
}

function below(place: Place, step: string | number): Place {
  return { ...place, path: [...place.path, step], shapes: childShapes(place.shapes, step) }
}

function hasField(shapes: readonly Shape[], ...names: readonly string[]): boolean {
  return shapes.some((shape) => shape.kind === 'object' && names.every((name) => shape.fields.has(name)))
}

/** Whether a model, a provider or a backend has a credential of its own. */
function hasCredential(entry: Readonly<Record<string, unknown>>): boolean {
  const { auth, params, defaults, policies } = entry
  const configured = [
    auth,
    memberOf(params, 'apiKey'),
    memberOf(defaults, 'auth'),
    memberOf(policies, 'backendAuth'),
  ]
  return configured.some((credential) => credential !== undefined && credential !== null)
}

function memberOf(value: unknown, name: string): unknown {
  return isTree(value) ? value[name] : undefined
}

/** Whether a provider without credential uses an identity: its name, or an object with the name as key. */
function impliesIdentity(provider: unknown): boolean {
  const names = typeof provider === 'string' ? [provider] : isTree(provider) ? Object.keys(provider) : []
  return names.some((name) => {
    const auth = findProviderKind(name)?.ambientAuth
    return auth !== undefined && machineIdentityOf(auth) !== undefined
  })
}

/** Whether a guard without a credential uses an identity. */
function isGuardWithIdentity(kind: string, guard: unknown): boolean {
  if (!Object.hasOwn(ambientAuth, kind) || guard === undefined) return false
  const configured = memberOf(memberOf(guard, 'policies'), 'backendAuth')
  return configured === undefined || configured === null
}
