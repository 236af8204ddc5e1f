import type { Environment } from '../config/load/environment.ts'
import type { DatabaseConfig, StorageConfig } from '../config/storage-config.ts'
import { isPostgresUrl, sqlitePathOf } from '../database/url.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../telemetry/log.ts'
import type { ConfigFile } from './file/config-file.ts'
import { createFileResources } from './file/file.ts'
import { createExpand } from './hybrid/expand.ts'
import { createHybridResources } from './hybrid/hybrid.ts'
import { createObjectResources, type ObjectView } from './objects/objects.ts'
import type { ResourceHost, Resources } from './resources.ts'
import { secretPaths } from './secrets/secret-paths.ts'
import { createSqliteStore } from './stores/sqlite/sqlite.ts'
import type { ResourceStore } from './stores/store.ts'

/** Sections of `config` for resources. */
export type ResourceSettings = {
  readonly storage?: StorageConfig | undefined
  readonly database?: DatabaseConfig | undefined
}

/** Source of the configuration that resources change. */
export type ResourceOrigin =
  | { readonly kind: 'file'; readonly file: ConfigFile }
  | { readonly kind: 'objects'; readonly view: ObjectView }

export type ResourceTools = {
  readonly host: ResourceHost
  readonly origin: ResourceOrigin
  readonly environment: Environment
  readonly randomUuid: () => string
  readonly clock: Clock
  readonly log: Log
}

/** Creates the config resources of a process by its configuration. Opens a database on first use. */
export async function openResources(
  { storage, database }: ResourceSettings,
  tools: ResourceTools,
): Promise<Resources> {
  const { host, origin, environment, randomUuid, clock, log } = tools
  if (origin.kind === 'objects') return createObjectResources({ view: origin.view, host })
  const { file } = origin
  const mode = storage?.mode ?? 'file'
  if (mode !== 'hybrid') return createFileResources({ mode, file, host, randomUuid, log })
  const expand = createExpand(storage?.allowedEnv ?? [], environment)
  return createHybridResources({
    store: await openStore({ ...database, historyRows: storage?.historyRecords }, tools),
    host,
    expand,
    file,
    randomUuid,
    clock,
    log,
  })
}

type StoreSettings = DatabaseConfig & { readonly historyRows: number | undefined }

async function openStore(
  { url = '', maxConnections, encryptionKey, previousEncryptionKeys, historyRows }: StoreSettings,
  { clock, log }: ResourceTools,
): Promise<ResourceStore> {
  const keys = {
    historyRows,
    encryptionKey,
    previousEncryptionKeys,
    onRotated: (records: number) =>
      log.info({ records }, 'config resources of previous encryption keys encrypted with the current one'),
  }
  if (!isPostgresUrl(url)) return createSqliteStore({ path: sqlitePathOf(url), ...keys, secretPaths, clock })
  // Loaded on demand: the driver takes 45 ms and 14 MB.
  const { createPostgresStore } = await import('./stores/postgres/postgres.ts')
  return createPostgresStore({
    url,
    ...(maxConnections === undefined ? {} : { maxConnections }),
    ...keys,
    secretPaths,
    clock,
    warn: (message) => log.warn({}, message),
  })
}
