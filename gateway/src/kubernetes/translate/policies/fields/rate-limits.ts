import { countsTokens as countsTokensGlobally } from '../../../../policies/rate-limit/global/config.ts'
import { isLlmOnly } from '../../../../policies/rate-limit/local-config.ts'
import type { Path } from '../../../../schema/path.ts'
import { fileValue } from '../../../own-kinds/enumerations.ts'
import { type FieldKind, fieldOf } from './field.ts'
import { resolveBackend } from './resolve-backend.ts'

/** `traffic.rateLimit.local`. The `id` is the index in the policy: merges add the policy and the target. */
export const localLimitField: FieldKind = {
  path: 'traffic.rateLimit.local',
  traffic: ['http', 'llm', 'mcp'],
  levels: 'all',
  translate({ traffic }) {
    const limits = traffic?.rateLimit?.local
    return (
      limits &&
      fieldOf(
        { localRateLimit: limits.map((limit, index) => ({ ...limit, id: String(index) })) },
        { place: ['localRateLimit'], path: ['traffic', 'rateLimit', 'local'] },
      )
    )
  },
  partFor(policies, traffic) {
    if (traffic === 'llm') return policies
    const limits = (policies.localRateLimit ?? []).filter((limit) => !isLlmOnly(limit))
    return limits.length === 0 ? undefined : { localRateLimit: limits }
  },
}

const globalPath: Path = ['traffic', 'rateLimit', 'global']

/** `traffic.rateLimit.global`. */
export const globalLimitField: FieldKind = {
  path: 'traffic.rateLimit.global',
  traffic: ['http', 'llm', 'mcp'],
  levels: 'all',
  translate({ traffic }, lookups) {
    const global = traffic?.rateLimit?.global
    if (global === undefined) return undefined
    const { backendRef, domain, descriptors, failureMode, protocol, timeout } = global
    const { reference, isBroken, ...resolved } = resolveBackend(
      backendRef,
      [...globalPath, 'backendRef'],
      lookups,
    )
    const limit = {
      backend: reference,
      domain,
      descriptors: descriptors.map(({ entries, unit, cost, limitOverride }) => ({
        entries: entries.map(({ name, expression }) => ({ key: name, value: expression })),
        ...(unit && { type: fileValue(unit) }),
        ...(cost !== undefined && { cost }),
        ...(limitOverride !== undefined && { limitOverride }),
      })),
      // A broken reference is a mistake, not an outage.
      ...(failureMode && !isBroken && { failureMode: fileValue(failureMode) }),
      ...(protocol && { protocol: fileValue(protocol) }),
      ...(timeout !== undefined && { timeout }),
    }
    const place = { place: ['remoteRateLimit'], path: globalPath, rename: renameDescriptor }
    return { ...fieldOf({ remoteRateLimit: limit }, place), ...resolved }
  },
  partFor(policies, traffic) {
    const { remoteRateLimit } = policies
    if (traffic === 'llm' || remoteRateLimit === undefined) return policies
    const descriptors = remoteRateLimit.descriptors.filter((descriptor) => !countsTokensGlobally(descriptor))
    return descriptors.length === 0 ? undefined : { remoteRateLimit: { ...remoteRateLimit, descriptors } }
  },
}

function renameDescriptor(rest: Path): Path {
  const [first, ...others] = rest
  if (first === 'backend') return ['backendRef', ...others]
  const names: Record<string, string> = { value: 'expression', key: 'name', type: 'unit' }
  return rest.map((step) => (typeof step === 'string' ? (names[step] ?? step) : step))
}
