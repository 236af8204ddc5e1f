import { isJsonObject } from '../../../lib/json/json.ts'
import type { ParentReference } from '../../objects/gateway-api.ts'
import { keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { InvalidObject, ObjectSet } from '../../objects/object-set.ts'
import { controllerName } from '../controller-name.ts'
import type { GatewayPlan, RouteKind } from '../plan.ts'
import { conditionsOf, satisfied, violated } from '../status/conditions.ts'
import type { ObjectStatus } from '../status/object-status.ts'
import { attach, parentsOf } from './attachment/attachment.ts'

const routeKinds: ReadonlySet<string> = new Set<RouteKind>(['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute'])

/** The statuses of routes that violate the schema of their kind, which serve nothing. */
export function invalidRouteStatuses(
  { invalid }: ObjectSet,
  plans: ReadonlyMap<ObjectKey, GatewayPlan>,
): ObjectStatus[] {
  return [...invalid.values()].flatMap((object) => {
    if (!isRoute(object)) return []
    const { kind, metadata, mistakes } = object
    const route = { kind, metadata, spec: { parentRefs: readParents(object) } }
    const attachments = attach(route, parentsOf(route), plans)
    if (attachments.length === 0) return []
    const refused = violated('Accepted', 'Invalid', mistakes.join('; '))
    const conditions = conditionsOf(object, [refused, satisfied('ResolvedRefs', 'ResolvedRefs')])
    const parents = attachments.map(({ parentRef }) => ({ parentRef, controllerName, conditions }))
    return [{ kind, key: keyOf(object), of: 'route', status: { parents } }]
  })
}

function isRoute(object: InvalidObject): object is InvalidObject & { readonly kind: RouteKind } {
  return routeKinds.has(object.kind)
}

/** The readable references of an object that is not valid. */
function readParents({ spec }: InvalidObject): ParentReference[] {
  const parents = isJsonObject(spec) ? spec['parentRefs'] : undefined
  return Array.isArray(parents) ? parents.flatMap(readParent) : []
}

function readParent(value: unknown): ParentReference[] {
  if (!isJsonObject(value) || typeof value['name'] !== 'string') return []
  const texts = (['group', 'kind', 'namespace', 'sectionName'] as const).flatMap((field) => {
    const text = value[field]
    return typeof text === 'string' ? [[field, text] as const] : []
  })
  const port = typeof value['port'] === 'number' ? { port: value['port'] } : {}
  return [{ ...Object.fromEntries(texts), name: value['name'], ...port }]
}
