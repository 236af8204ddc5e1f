import { randomBytes, randomUUID } from 'node:crypto'
import { createAdminApi } from '../admin/api.ts'
import { budgetEndpoints } from '../admin/budgets.ts'
import { celEndpoints } from '../admin/cel/cel.ts'
import { costsEndpoint } from '../admin/costs/costs.ts'
import { guardsTestEndpoint } from '../admin/inspection/guards-test.ts'
import { routesExplainEndpoint } from '../admin/inspection/routes-explain.ts'
import { keyEndpoints } from '../admin/keys/keys.ts'
import { limitsEndpoint } from '../admin/limits.ts'
import { openApiParts } from '../admin/openapi-parts.ts'
import { createConsole } from '../admin/ui/ui.ts'
import { type ConsoleStorage, whoamiEndpoint } from '../admin/whoami/whoami.ts'
import type { ConfigVersions } from '../config/live/config-versions.ts'
import type { LiveConfig } from '../config/live/live.ts'
import { rereadConfigFile } from '../config/load/config-file.ts'
import type { Environment } from '../config/load/environment.ts'
import { writeFileAtomically } from '../config/load/write-file.ts'
import type { Config } from '../config/schema.ts'
import { trafficSections } from '../config/traffic/sections.ts'
import type { DataPlane } from '../data-plane/data-plane.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Clock } from '../lib/clock.ts'
import { createWorkQueue } from '../lib/scheduling/work-queue.ts'
import { createYieldPoint } from '../lib/scheduling/yielding.ts'
import { createConfigApi } from '../resources/api/api.ts'
import type { ConfigFile } from '../resources/file/config-file.ts'
import { editFile } from '../resources/file/file-edit.ts'
import { createExpand } from '../resources/hybrid/expand.ts'
import { openResources } from '../resources/open.ts'
import type { Resources } from '../resources/resources.ts'
import type { LogSink } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { ConfigFeed, ConfigOrigin } from './config-feed.ts'
import { isSmallText } from './config-tasks.ts'
import { type ConsoleApi, createConsoleApi } from './console-api.ts'
import type { Control } from './control-link.ts'
import { createLogApi, type LogApi } from './log-api.ts'
import type { RunConfigTask } from './worker-tasks.ts'

export type ControlPlaneOptions = {
  feed: ConfigFeed
  env: Environment
  version: string
  clock: Clock
  log: LogSink
  metrics: Metrics
  runTask: RunConfigTask
  settings: NonNullable<Config['config']>
  versions: ConfigVersions
  live: LiveConfig
  dataPlane: DataPlane
  /** Undefined without a database. */
  ledger: Ledger | undefined
  /** Reads the JSON Schema of the configuration file. */
  readSchema: () => Promise<object>
  /** Folder of the built console. */
  consoleFolder: URL
}

export type ControlPlane = Control & {
  resources: Resources
  logApi: LogApi
  consoleApi: ConsoleApi
}

/** Log message for a change of settings that are read at start. */
export const restartNeeded = 'a change of config.* takes effect after a restart'

/** Opens the config resources with their storage, and the API on them. */
export async function openControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { env, version, log, settings, live } = options
  const { clock, dataPlane } = options
  const revisionKey = randomBytes(32).toString('hex')
  const resources = await openConfigResources(options, revisionKey)
  const workQueue = createWorkQueue(clock)
  const yieldPoint = createYieldPoint(clock)
  const expand = createExpand(settings.storage?.allowedEnv ?? [], env)
  const configApi = createConfigApi({
    workQueue,
    resources,
    allowances: settings.storage ?? {},
    expand,
    status: () => live.status,
    ledger: () => options.ledger?.status(),
    readSchema: options.readSchema,
    version,
    openApiParts,
    revisionKey,
    newRequestId: randomUUID,
    randomBytes,
    log,
    flushLog: log.flush,
    yieldPoint,
  })
  const logApi = createLogApi(settings, clock, log)
  const consoleApi = createConsoleApi({ ...options, resources })
  const keys = keyEndpoints({
    resources,
    clock,
    yieldPoint,
    randomBytes,
    newRequestId: randomUUID,
    flushLog: log.flush,
    ledger: logApi.queries,
  })
  const api = createAdminApi({
    endpoints: [
      whoamiEndpoint({ version, settings, storage: storageOf(options, resources) }),
      ...keys,
      limitsEndpoint(dataPlane.limits),
      ...budgetEndpoints(dataPlane.budgets),
      costsEndpoint({ resources, read: dataPlane.costs }),
      ...logApi.endpoints,
      ...celEndpoints({
        queries: logApi.queries,
        clock,
        customFunctions: () => live.config?.config?.customFunctions,
      }),
      ...consoleApi.endpoints,
      routesExplainEndpoint(dataPlane.explainRequest),
      guardsTestEndpoint({
        test: dataPlane.testGuards,
        resources,
        allowances: settings.storage ?? {},
        expand,
        backends: () => trafficSections(live.config ?? {}).backends,
      }),
    ],
    next: configApi,
    workQueue,
    log,
  })
  const console = createConsole({ folder: options.consoleFolder, randomBytes, log, next: api })
  return { resources, logApi, consoleApi, api: console, pending: resources.pending }
}

function storageOf({ feed }: ControlPlaneOptions, resources: Resources): () => ConsoleStorage {
  const { origin } = feed
  const reason = origin.kind === 'file' ? 'config.storage.mode is readOnly' : origin.view.readOnlyReason
  return () => {
    const { mode } = resources.status()
    const isReadOnly = mode === 'readOnly' || mode === 'objects'
    return { mode: mode === 'hybrid' ? 'hybrid' : 'file', readOnlyReason: isReadOnly ? reason : undefined }
  }
}

function openConfigResources(options: ControlPlaneOptions, revisionKey: string): Promise<Resources> {
  const { feed, env, clock, log, metrics, settings, live, dataPlane } = options
  const { origin } = feed
  return openResources(settings, {
    host: {
      prepare: live.prepare,
      exclusive: live.exclusive,
      markApi: dataPlane.markApi,
      report: (lastError) => live.report('resources', lastError),
      reportDatabase(lastError) {
        metrics.configDatabase(lastError === undefined)
        live.report('database', lastError)
      },
    },
    origin:
      origin.kind === 'file' ? { kind: 'file', file: configFileOf(origin, options, revisionKey) } : origin,
    environment: env,
    randomUuid: randomUUID,
    clock,
    log,
  })
}

function configFileOf(
  { file, load, activated, index }: ConfigOrigin & { kind: 'file' },
  options: ControlPlaneOptions,
  revisionKey: string,
): ConfigFile {
  const { env, log, settings, versions } = options
  return {
    path: file,
    revisionKey,
    read: () => rereadConfigFile(file),
    async edit(plain) {
      const request = { ...plain, env, allowedEnv: settings.storage?.allowedEnv ?? [], revisionKey }
      return isSmallText(plain.text) ? editFile(request) : await options.runTask('edit', request)
    },
    load: async (text) => versions.next(await load(text)),
    write: (next, expected) => writeFileAtomically(file, next, { expected }),
    written: () => versions.written,
    activated(_text, config) {
      activated()
      if (versions.accept(config)) log.warn({}, restartNeeded)
    },
    index,
  }
}
