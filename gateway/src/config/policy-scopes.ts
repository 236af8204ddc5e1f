import type { TrafficKind } from '../policies/registry/cel-variables.ts'
import type { PolicyScope } from '../policies/registry/scope.ts'
import type { Path } from '../schema/path.ts'
import { carriesHttp, listenersOf } from './traffic/attachments.ts'
import { kindOfBackend, kindOfRoute, nameOfRoute } from './traffic/route-kind.ts'
import type { TrafficSections } from './traffic/sections.ts'

/** Policy scope and its path in the configuration. */
export type LocatedScope = PolicyScope & {
  /** Path, with `binds` in the newer form. */
  path: Path
  /** Kind of traffic; requests of every kind pass a gateway. */
  kind: TrafficKind | 'gateway'
}

/** Configuration sections with policies. */
type Sections = { readonly [section in 'llm' | 'mcp' | 'ui']?: Section | undefined }
type Section = { readonly policies?: PolicyScope['policies'] | undefined }

/** Returns the policies of all scopes. */
export function policyScopes({ llm, mcp, ui }: Sections, sections: TrafficSections): LocatedScope[] {
  const scopes: LocatedScope[] = []
  for (const [name, gateway] of Object.entries(sections.gateways)) {
    for (const listener of listenersOf(name, gateway)) {
      if (!carriesHttp(listener)) continue
      const { place, path, config: policies } = listener
      scopes.push({ name: `gateway ${place}`, policies, path, kind: 'gateway' })
    }
  }
  sections.routes.forEach((route, index) => {
    if (route.policies === undefined) return
    scopes.push({
      name: `route ${nameOfRoute(route, index)}`,
      policies: route.policies,
      path: ['routes', index, 'policies'],
      kind: kindOfRoute(route, sections.backends),
    })
  })
  scopes.push(...backendScopes(sections))
  if (llm?.policies)
    scopes.push({ name: 'llm', policies: llm.policies, path: ['llm', 'policies'], kind: 'llm' })
  if (mcp?.policies)
    scopes.push({ name: 'mcp', policies: mcp.policies, path: ['mcp', 'policies'], kind: 'mcp' })
  if (ui?.policies) scopes.push({ name: 'ui', policies: ui.policies, path: ['ui', 'policies'], kind: 'ui' })
  return scopes
}

/** Policies of named backends and of backends of routes. */
function backendScopes({ backends, routes }: TrafficSections): LocatedScope[] {
  const ofNamed = backends.flatMap(({ name, policies, mcp, ai }, index): LocatedScope[] => {
    if (policies === undefined) return []
    const path = ['backends', index, 'policies']
    return [{ name: `backend ${name}`, policies, path, kind: kindOfBackend({ mcp, ai }) }]
  })
  const ofRoutes = routes.flatMap((route, position) =>
    (route.backends ?? []).flatMap(({ policies }, index): LocatedScope[] => {
      if (policies === undefined) return []
      const path = ['routes', position, 'backends', index, 'policies']
      const name = `route ${nameOfRoute(route, position)} backend ${index}`
      return [{ name, policies, path, kind: kindOfRoute(route, backends) }]
    }),
  )
  return [...ofNamed, ...ofRoutes]
}
