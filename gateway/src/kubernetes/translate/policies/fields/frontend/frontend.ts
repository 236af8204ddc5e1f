import type { Path } from '../../../../../schema/path.ts'
import { fileValue } from '../../../../own-kinds/enumerations.ts'
import type { GatewayPolicySpec } from '../../../../own-kinds/gateway-policy/gateway-policy.ts'
import type { FrontendPolicies } from '../../../plan.ts'
import type { Lookups } from '../../lookups.ts'
import { translateRules } from '../authorization.ts'
import { type FieldKind, fieldOf } from '../field.ts'
import type { FrontendPart } from './frontend-part.ts'
import { translateAccessLog, translateTracing } from './telemetry.ts'

type Frontend = NonNullable<GatewayPolicySpec['frontend']>

/** Fields of `frontend`, which apply to a Gateway as a whole. */
export const frontendFields: readonly FieldKind[] = [
  frontendField('networkAuthorization', ({ networkAuthorization }, path) => {
    if (networkAuthorization === undefined) return undefined
    const { rules, mistakes, rename } = translateRules(networkAuthorization, path)
    return { policies: { networkAuthorization: { rules } }, resolved: { mistakes }, rename }
  }),
  frontendField(
    'accessLog',
    ({ accessLog }, path, lookups) => accessLog && translateAccessLog(accessLog, path, lookups),
  ),
  frontendField(
    'tracing',
    ({ tracing }, path, lookups) => tracing && translateTracing(tracing, path, lookups),
  ),
  frontendField('proxyProtocol', ({ proxyProtocol }) => {
    if (proxyProtocol === undefined) return undefined
    const { version, mode, trustedPeers } = proxyProtocol
    const translated = {
      ...(version && { version: fileValue(version) }),
      ...(mode && { mode: fileValue(mode) }),
      ...(trustedPeers && { trustedPeers }),
    }
    return { policies: { proxyProtocol: translated } }
  }),
  frontendField('http', ({ http }) => http && { policies: { http } }),
]

function frontendField(
  name: keyof Frontend & keyof FrontendPolicies,
  translate: (frontend: Frontend, path: Path, lookups: Lookups) => FrontendPart | undefined,
): FieldKind {
  const path: Path = ['frontend', name]
  return {
    path: path.join('.'),
    traffic: [],
    levels: 'mostSpecific',
    isOfGateway: true,
    translate({ frontend, targetRefs }, lookups) {
      const part = frontend && translate(frontend, path, lookups)
      if (part === undefined) return undefined
      const { policies, resolved, rename } = part
      const isWrong = targetRefs.some(
        ({ kind, sectionName }) => kind !== 'Gateway' || sectionName !== undefined,
      )
      const message = 'all targets must be Gateways without sectionName'
      return {
        ...fieldOf({}, { place: [name], path, rename }),
        ...resolved,
        mistakes: [...(resolved?.mistakes ?? []), ...(isWrong ? [{ path, message }] : [])],
        frontend: policies,
      }
    },
  }
}
