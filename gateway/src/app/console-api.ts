import { hostname } from 'node:os'
import type { AdminEndpoint } from '../admin/api.ts'
import { forwardEndpoints } from '../admin/forward/forward.ts'
import { mcpEndpoints } from '../admin/mcp/mcp.ts'
import { createLiveFeed } from '../admin/state/live.ts'
import { stateEndpoint } from '../admin/state/state.ts'
import type { ConfigVersions } from '../config/live/config-versions.ts'
import type { LiveConfig } from '../config/live/live.ts'
import type { DataPlane } from '../data-plane/data-plane.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Clock } from '../lib/clock.ts'
import type { Resources } from '../resources/resources.ts'
import { createForwardingClient } from './forwarding-client.ts'

/** Endpoints of the admin API for the console: state, figures, requests to own listeners. */
export type ConsoleApi = { readonly endpoints: readonly AdminEndpoint[]; close(): Promise<void> }

export type ConsoleApiOptions = {
  readonly version: string
  readonly clock: Clock
  readonly versions: ConfigVersions
  readonly live: LiveConfig
  readonly dataPlane: DataPlane
  readonly ledger: Ledger | undefined
  readonly resources: Resources
}

export function createConsoleApi(options: ConsoleApiOptions): ConsoleApi {
  const { version, clock, versions, live, dataPlane, ledger, resources } = options
  const startedAt = clock.now()
  const id = `${hostname()}/${process.pid}`
  const client = createForwardingClient()
  const feed = createLiveFeed({ observe: dataPlane.observe, now: clock.now })
  const state = stateEndpoint({
    version,
    startedAt,
    config: () => live.config,
    errors: live.errors,
    needsRestart: versions.needsRestart,
    resources,
    ledger: () => ledger?.status(),
    observe: dataPlane.observe,
    replicas: async () => [{ id, self: true, startedAt: new Date(startedAt).toISOString() }],
  })
  return {
    endpoints: [
      ...forwardEndpoints({ config: () => live.config, send: client.send }),
      ...mcpEndpoints(dataPlane.inspectMcp),
      state,
      feed.endpoint,
    ],
    async close() {
      feed.close()
      await client.close()
    },
  }
}
