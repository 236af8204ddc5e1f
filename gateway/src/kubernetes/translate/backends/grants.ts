import type { ReferenceGrant } from '../../objects/gateway-api.ts'

/** The object that contains a reference. `group` is empty for the core group. */
export type Referrer = { readonly group: string; readonly kind: string; readonly namespace: string }

/** The object that a reference names. */
export type Referent = Referrer & { readonly name: string }

/** Returns whether a reference is permitted. */
export type Permits = (from: Referrer, to: Referent) => boolean

/**
 * Indexes ReferenceGrants. References inside a namespace need none; others need a grant in the namespace of
 * the referent (Gateway API, ReferenceGrant).
 */
export function indexGrants(grants: Iterable<ReferenceGrant>): Permits {
  const byNamespace = new Map<string, ReferenceGrant['spec'][]>()
  for (const { metadata, spec } of grants) {
    const { namespace = '' } = metadata
    const listed = byNamespace.get(namespace)
    if (listed === undefined) byNamespace.set(namespace, [spec])
    else listed.push(spec)
  }
  return (from, to) => {
    if (from.namespace === to.namespace) return true
    return byNamespace.get(to.namespace)?.some((grant) => matches(grant, from, to)) ?? false
  }
}

function matches(grant: ReferenceGrant['spec'], from: Referrer, to: Referent): boolean {
  const isFrom = grant.from.some(
    ({ group, kind, namespace }) =>
      group === from.group && kind === from.kind && namespace === from.namespace,
  )
  if (!isFrom) return false
  return grant.to.some(
    ({ group, kind, name }) =>
      // An empty name is an omitted one.
      group === to.group && kind === to.kind && (name === undefined || name === '' || name === to.name),
  )
}
