import type { TrafficKind } from '../policies/registry/cel-variables.ts'
import type { PolicyLevel } from '../policies/registry/scope.ts'
import type { Path } from '../schema/path.ts'
import { carriesHttp, listenersOf } from './traffic/attachments.ts'
import { kindOfRoute, nameOfRoute } from './traffic/route-kind.ts'
import type { TrafficSections } from './traffic/sections.ts'

/** Policies, and where they are configured. */
export type PlacedPolicies = PolicyLevel & {
  /** Where they stand, as if `binds` were written in the newer form. */
  path: Path
  /** What passes there; a gateway is passed by requests of every kind. */
  kind: TrafficKind | 'gateway'
}

/** Sections that hold policies, as far as these are concerned. */
type Sections = { readonly [section in 'llm' | 'mcp' | 'ui']?: Section | undefined }
type Section = { readonly policies?: PolicyLevel['policies'] | undefined }

/** The policies of all places that requests pass. */
export function policyLevels({ llm, mcp, ui }: Sections, sections: TrafficSections): PlacedPolicies[] {
  const levels: PlacedPolicies[] = []
  for (const [name, gateway] of Object.entries(sections.gateways)) {
    for (const listener of listenersOf(name, gateway)) {
      if (!carriesHttp(listener)) continue
      const { place, path, config: policies } = listener
      levels.push({ place: `gateway ${place}`, policies, path, kind: 'gateway' })
    }
  }
  sections.routes.forEach((route, index) => {
    if (route.policies === undefined) return
    levels.push({
      place: `route ${nameOfRoute(route, index)}`,
      policies: route.policies,
      path: ['routes', index, 'policies'],
      kind: kindOfRoute(route, sections.backends),
    })
  })
  if (llm?.policies)
    levels.push({ place: 'llm', policies: llm.policies, path: ['llm', 'policies'], kind: 'llm' })
  if (mcp?.policies)
    levels.push({ place: 'mcp', policies: mcp.policies, path: ['mcp', 'policies'], kind: 'mcp' })
  if (ui?.policies)
    levels.push({ place: 'ui', policies: ui.policies, path: ['ui', 'policies'], kind: 'http' })
  return levels
}
