import { hostname } from 'node:os'
import type { AdminEndpoint } from '../admin/api.ts'
import { forwardEndpoints } from '../admin/forward/forward.ts'
import { mcpEndpoints } from '../admin/mcp/mcp.ts'
import { createLiveFeed } from '../admin/state/live.ts'
import { type Replica, stateEndpoint } from '../admin/state/state.ts'
import type { ConfigVersions } from '../config/live/config-versions.ts'
import type { LiveConfig } from '../config/live/live.ts'
import type { Config } from '../config/schema.ts'
import type { DataPlane } from '../data-plane/data-plane.ts'
import type { ReplicaRegistry } from '../database/replicas/replicas.ts'
import { isPostgresUrl } from '../database/url.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Clock } from '../lib/clock.ts'
import type { Resources } from '../resources/resources.ts'
import type { Log } from '../telemetry/log.ts'
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
  readonly settings: NonNullable<Config['config']>
  readonly log: Log
}

export function createConsoleApi(options: ConsoleApiOptions): ConsoleApi {
  const { version, clock, versions, live, dataPlane, ledger, resources } = options
  const startedAt = clock.now()
  const self = { id: `${hostname()}/${process.pid}`, startedAt }
  const registry = openRegistry(self, options)
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
    replicas: async () => replicasOf(self, await (await registry)?.read()),
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
      await Promise.all([client.close(), registry?.then((opened) => opened?.close())])
    },
  }
}

/** Undefined without a Postgres database: then the process has no others. */
function openRegistry(
  self: { readonly id: string; readonly startedAt: number },
  { settings, clock, log }: ConsoleApiOptions,
): Promise<ReplicaRegistry | undefined> | undefined {
  const url = settings.database?.url ?? settings.logging?.database?.url
  if (url === undefined || !isPostgresUrl(url)) return undefined
  // The library for Postgres is loaded by processes that use it.
  return import('../database/replicas/replicas.ts')
    .then(({ createReplicaRegistry }) =>
      createReplicaRegistry({
        ...{ ...self, url, now: clock.now },
        // The stores of the same database report an outage.
        onChange: (error) => log.debug({ err: error }, 'replicas of the database not known'),
      }),
    )
    .catch((error: unknown) => {
      // The stores of the same database report an address that is not valid.
      log.debug({ err: error }, 'replicas of the database not known')
      return undefined
    })
}

/** This process first; alone if the others are not known. */
function replicasOf(
  self: { readonly id: string; readonly startedAt: number },
  found: readonly { id: string; startedAt: number; lastSeen: number }[] = [],
): Replica[] {
  const others = found.filter(({ id }) => id !== self.id)
  return [
    { id: self.id, self: true, startedAt: new Date(self.startedAt).toISOString() },
    ...others.map(({ id, startedAt, lastSeen }) => ({
      ...{ id, self: false },
      startedAt: new Date(startedAt).toISOString(),
      lastSeen: new Date(lastSeen).toISOString(),
    })),
  ]
}
