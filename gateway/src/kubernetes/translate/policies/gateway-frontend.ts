import type { FrontendPolicies } from '../plan.ts'
import { frontendFields } from './fields/frontend/frontend.ts'
import type { Level } from './levels.ts'

/** Settings of a Gateway as a whole, with the names of the backends that they refer to. */
export type GatewayFrontend = { readonly policies: FrontendPolicies; readonly backends: readonly string[] }

/** Rules that close every connection, in place of rules with mistakes. */
const closed: FrontendPolicies = { networkAuthorization: { rules: [{ deny: 'true' }] } }

/** Creates a function that merges the `frontend` fields of a Gateway. The same object for the same level. */
export function createFrontends(): (level: Level) => GatewayFrontend | undefined {
  const known = new WeakMap<Level, { readonly frontend: GatewayFrontend | undefined }>()
  return (level) => {
    const existing = known.get(level)
    if (existing !== undefined) return existing.frontend
    const frontend = mergeFrontend(level)
    known.set(level, { frontend })
    return frontend
  }
}

/** Rules with mistakes close connections; other fields with mistakes are omitted. */
function mergeFrontend({ fields }: Level): GatewayFrontend | undefined {
  let policies: FrontendPolicies = {}
  const backends = new Set<string>()
  for (const { path } of frontendFields) {
    const applied = fields.get(path)?.field
    if (applied === undefined) continue
    const { frontend = {}, backends: names } = applied.field
    const isValid = applied.mistakesFor('http').length === 0
    if (isValid) for (const name of names) backends.add(name)
    if (isValid) policies = { ...policies, ...frontend }
    else if (frontend.networkAuthorization !== undefined) policies = { ...policies, ...closed }
  }
  return Object.keys(policies).length === 0 ? undefined : { policies, backends: [...backends].sort() }
}
