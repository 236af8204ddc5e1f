import type { TrafficKind } from '../../policies/registry/cel-variables.ts'
import { findBackend } from '../../upstream/config.ts'
import type { NamedBackendConfig, RouteConfig } from './route-config.ts'

/** Kind of a route: the kind of its backend, which may be a named one. */
export function kindOfRoute(
  { backends = [] }: RouteConfig,
  named: readonly NamedBackendConfig[],
): Exclude<TrafficKind, 'ui'> {
  for (const entry of backends) {
    const { ai, mcp } = (entry.backend === undefined ? undefined : findBackend(entry.backend, named)) ?? entry
    if (ai !== undefined) return 'llm'
    if (mcp !== undefined) return 'mcp'
  }
  return 'http'
}

/** Name of a route in logs, metrics and counters. */
export function nameOfRoute({ name }: { name?: string | undefined }, index: number): string {
  return name ?? `route-${index}`
}

export function nameOfTcpRoute({ name }: { name?: string | undefined }, index: number): string {
  return name ?? `tcp-route-${index}`
}
