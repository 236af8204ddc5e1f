import { attachedHostnames } from '../../../../pipeline/routing/hostnames.ts'
import type { ObjectKey } from '../../../objects/meta.ts'
import type { ListenerPlan } from '../../plan.ts'
import type { AttachingRoute, Attachment } from './attachment.ts'
import { createHostnameClaims, type HostnameClaims } from './hostname-claims.ts'

/** Hostnames of HTTPRoutes and GRPCRoutes by listener. */
export type Claims = {
  /**
   * Claims the hostnames of a route on its listeners; removes listeners on which the other kind has one of
   * them. Returns unaffected attachments themselves.
   */
  claim(
    route: AttachingRoute & { readonly kind: 'HTTPRoute' | 'GRPCRoute' },
    key: ObjectKey,
    attachments: readonly Attachment[],
  ): readonly Attachment[]
}

/**
 * A listener accepts one of an HTTPRoute and a GRPCRoute with a common hostname: the first by precedence
 * (Gateway API, `GRPCRouteSpec.hostnames`). Routes must be passed in that order.
 */
export function createClaims(): Claims {
  const byListener = new Map<ListenerPlan, Record<'HTTPRoute' | 'GRPCRoute', HostnameClaims>>()
  const claimsOf = (listener: ListenerPlan) => {
    const known = byListener.get(listener)
    if (known !== undefined) return known
    const created = { HTTPRoute: createHostnameClaims(), GRPCRoute: createHostnameClaims() }
    byListener.set(listener, created)
    return created
  }
  return {
    claim({ kind, spec: { hostnames = [] } }, key, attachments) {
      const other = kind === 'HTTPRoute' ? 'GRPCRoute' : 'HTTPRoute'
      return attachments.map((attachment): Attachment => {
        if (attachment.refusal !== undefined) return attachment
        let conflict: string | undefined
        const listeners = attachment.listeners.filter((listener) => {
          const common = attachedHostnames(listener.hostname, hostnames) ?? []
          const claims = claimsOf(listener)
          const owner = claims[other].find(common)
          if (owner === undefined) claims[kind].add(common, key)
          else
            conflict ??= `${other} ${owner} has a common hostname on listener ${listener.name}, and precedes`
          return owner === undefined
        })
        if (conflict === undefined) return attachment
        if (listeners.length > 0) return { ...attachment, listeners }
        return { ...attachment, listeners, refusal: { reason: 'HostnameConflict', message: conflict } }
      })
    },
  }
}
