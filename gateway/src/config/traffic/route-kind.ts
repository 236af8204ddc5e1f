import type { TrafficKind } from '../../policies/registry/cel-variables.ts'
import { findBackend } from '../../upstream/config.ts'
import type { NamedBackendConfig, RouteConfig } from './route-config.ts'

/** What a route leads to: the kind of its backend, which may be a named one. */
export function kindOfRoute(
  { backends = [] }: RouteConfig,
  named: readonly NamedBackendConfig[],
): TrafficKind {
  for (const entry of backends) {
    const { ai, mcp } = (entry.backend === undefined ? undefined : findBackend(entry.backend, named)) ?? entry
    if (ai !== undefined) return 'llm'
    if (mcp !== undefined) return 'mcp'
  }
  return 'http'
}

/** Its name in logs and metrics, and what its counters are kept by. */
export function nameOfRoute({ name }: { name?: string | undefined }, index: number): string {
  return name ?? `route-${index}`
}

export function nameOfTcpRoute({ name }: { name?: string | undefined }, index: number): string {
  return name ?? `tcp-route-${index}`
}
