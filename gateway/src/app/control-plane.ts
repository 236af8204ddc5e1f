import { randomUUID } from 'node:crypto'
import { withLimits } from '../admin/limits.ts'
import { readLimitsOf } from '../config/limit-snapshot.ts'
import type { FileSource } from '../config/live/file-source.ts'
import type { LiveConfig } from '../config/live/live.ts'
import { rereadConfigFile } from '../config/load/config-file.ts'
import type { Environment } from '../config/load/environment.ts'
import { writeFileAtomically } from '../config/load/write-file.ts'
import { type Config, configJsonSchema } from '../config/schema.ts'
import { createYieldPoint } from '../lib/scheduling/yielding.ts'
import { createConfigApi } from '../resources/api/api.ts'
import { editFile } from '../resources/file/file-edit.ts'
import { createExpand } from '../resources/hybrid/expand.ts'
import { openResources } from '../resources/open.ts'
import type { Resources } from '../resources/resources.ts'
import type { LogSink } from '../telemetry/log.ts'
import { isSmallText, type RunConfigTask } from './config-tasks.ts'
import type { Control } from './control-link.ts'
import type { DataPlane } from './data-plane.ts'

export type ControlPlaneOptions = {
  file: string
  env: Environment
  version: string
  log: LogSink
  runTask: RunConfigTask
  settings: NonNullable<Config['config']>
  source: FileSource
  live: LiveConfig
  dataPlane: DataPlane
}

export type ControlPlane = Control & { resources: Resources }

/** Log message for a change of settings that are read at start. */
export const restartNeeded = 'a change of config.* takes effect after a restart'

/** Opens the config resources with their storage, and the API on them. */
export async function openControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { env, version, log, settings, live } = options
  const { context } = options.dataPlane
  const resources = await openConfigResources(options)
  const api = createConfigApi({
    workQueue: context.workQueue,
    resources,
    allowances: settings.storage ?? {},
    expand: createExpand(settings.storage?.allowedEnv ?? [], env),
    status: () => live.status,
    schema: configJsonSchema(),
    version,
    log,
    flushLog: log.flush,
    yieldPoint: createYieldPoint(context.clock),
  })
  const readLimits = async () =>
    live.config ? readLimitsOf(live.config, context) : { local: [], global: [] }
  return { resources, api: withLimits(readLimits, api), pending: resources.pending }
}

function openConfigResources(options: ControlPlaneOptions): Promise<Resources> {
  const { file, env, log, settings, source, live, dataPlane } = options
  const { clock, metrics } = dataPlane.context
  return openResources(settings, {
    host: {
      prepare: live.prepare,
      exclusive: live.exclusive,
      markApi: dataPlane.provenance.markApi,
      report: (lastError) => live.report('resources', lastError),
      reportDatabase(lastError) {
        metrics.configDatabase(lastError === undefined)
        live.report('database', lastError)
      },
    },
    file: {
      read: () => rereadConfigFile(file),
      async edit(plain) {
        const request = { ...plain, env, allowedEnv: settings.storage?.allowedEnv ?? [] }
        return isSmallText(plain.text) ? editFile(request) : await options.runTask('edit', request)
      },
      load: source.load,
      write: (next, expected) => writeFileAtomically(file, next, { expected }),
      written(_text, config) {
        if (source.accept(config)) log.warn({}, restartNeeded)
      },
    },
    environment: env,
    randomUuid: randomUUID,
    clock,
    log,
  })
}
