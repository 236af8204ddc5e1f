import type { TrafficKind } from '../../policies/registry/cel-variables.ts'
import { findBackend } from '../../upstream/config.ts'
import type { NamedBackendConfig, RouteConfig } from './route-config.ts'

/** Kind of a route: the kind of its backend, which may be a named one. */
export function kindOfRoute(
  { backends = [] }: RouteConfig,
  named: readonly NamedBackendConfig[],
): Exclude<TrafficKind, 'ui'> {
  for (const entry of backends) {
    const kind = kindOfBackend(
      (entry.backend === undefined ? undefined : findBackend(entry.backend, named)) ?? entry,
    )
    if (kind !== 'http') return kind
  }
  return 'http'
}

/** Kind of the requests to a backend. */
export function kindOfBackend({ ai, mcp }: { ai?: unknown; mcp?: unknown }): Exclude<TrafficKind, 'ui'> {
  if (ai !== undefined) return 'llm'
  return mcp === undefined ? 'http' : 'mcp'
}

/** Name of a route in logs, metrics and counters. */
export function nameOfRoute({ name }: { name?: string | undefined }, index: number): string {
  return name ?? `route-${index}`
}

export function nameOfTcpRoute({ name }: { name?: string | undefined }, index: number): string {
  return name ?? `tcp-route-${index}`
}
