import { ConfigRejected } from '../../config/config-rejected.ts'
import type { Watcher } from '../../config/live/watch.ts'
import { readConfigFile } from '../../config/load/config-file.ts'
import type { Environment } from '../../config/load/environment.ts'
import type { Config } from '../../config/schema.ts'
import { checkObjects, isViolated, mistakesOf } from '../../kubernetes/check/check.ts'
import { type FolderState, readManifestFolder } from '../../kubernetes/objects/manifests/folder.ts'
import {
  createManifestReader,
  type Manifests,
  type ReadManifests,
} from '../../kubernetes/objects/manifests/manifests.ts'
import { parseManifest } from '../../kubernetes/objects/manifests/parse-manifest.ts'
import { createServiceNames } from '../../kubernetes/objects/manifests/service-names.ts'
import { watchManifestFolder } from '../../kubernetes/objects/manifests/watch-folder.ts'
import type { ObjectKey } from '../../kubernetes/objects/meta.ts'
import { objectOf } from '../../kubernetes/translate/object-of.ts'
import {
  createTranslator,
  type GatewayTranslation,
  type Translation,
} from '../../kubernetes/translate/translate.ts'
import { systemClock } from '../../lib/clock.ts'
import { createYieldPoint } from '../../lib/scheduling/yielding.ts'
import type { LogSink } from '../../telemetry/log.ts'
import type { ConfigFeed } from '../config-feed.ts'
import { acceptedConfig, isSmallText, loadConfig } from '../config-tasks.ts'
import type { RunConfigTask } from '../worker-tasks.ts'

export type ManifestOptions = {
  folder: string
  /** `<namespace>/<name>`; undefined selects the only Gateway of this controller. */
  gateway: string | undefined
  /** File with the section `config` of the process. */
  settingsFile: string | undefined
  env: Environment
  runTask: RunConfigTask
  log: LogSink
}

/** Opens a folder with manifests. Throws `ConfigRejected`, or the error of the file with settings. */
export function openManifestFeed({ settingsFile, env, runTask, ...options }: ManifestOptions): ConfigFeed {
  return createManifestFeed({
    ...options,
    settings: settingsFile === undefined ? {} : readSettings(settingsFile, env),
    readManifests: createManifestReader({
      parse: (file) => (isSmallText(file.text) ? parseManifest(file) : runTask('manifest', file)),
      yieldPoint: createYieldPoint(systemClock),
    }),
  })
}

function readSettings(file: string, env: Environment): NonNullable<Config['config']> {
  const { config, ...others } = acceptedConfig(loadConfig({ text: readConfigFile(file), file, env }))
  const [section] = Object.keys(others)
  const stored = (['storage', 'database'] as const).find((field) => config?.[field] !== undefined)
  if (stored !== undefined) {
    throw new ConfigRejected([
      `${file}: config.${stored} is not allowed beside manifests, which are read-only`,
    ])
  }
  if (section === undefined) return config ?? {}
  throw new ConfigRejected([
    `${file}: ${section} is not allowed beside manifests: only the section config is`,
  ])
}

type ManifestFeedOptions = Pick<ManifestOptions, 'folder' | 'gateway' | 'log'> & {
  /** `config` of the process. */
  settings: NonNullable<Config['config']>
  readManifests: ReadManifests
}

/** A folder with manifests, translated into the configuration of one Gateway. */
function createManifestFeed(options: ManifestFeedOptions): ConfigFeed {
  const { folder, gateway, settings, readManifests, log } = options
  const translate = createTranslator()
  const withServiceNames = createServiceNames()
  const report = createReporter(log)
  let state: FolderState = { appearance: '', folders: [] }
  let watcher: Watcher | undefined
  let active: ObjectKey | undefined
  return {
    origin: {
      kind: 'objects',
      from: 'manifests',
      view: {
        readOnlyReason: `the configuration comes from the manifests in ${folder}: change them there`,
        objectOf: (config, path) => objectOf(config, path, active),
      },
    },
    async read() {
      const read = await readManifestFolder(folder)
      state = read.state
      const manifests = await readManifests(read.files)
      const { errors } = manifests
      if (errors.length > 0) {
        throw new ConfigRejected(errors.map(({ file, line, message }) => `${file}:${line}: ${message}`))
      }
      const translation = translate(withServiceNames(manifests.objects))
      const [key, translated] = chosenGateway(translation, gateway)
      report(manifests, translation, translated)
      active = key
      return { ...translated.config, config: settings }
    },
    watch({ changed, failed }) {
      watcher = watchManifestFolder(folder, { state, onChange: changed, onError: failed })
    },
    settled() {},
    close() {
      watcher?.close()
    },
  }
}

/** The Gateway of the process: one process serves one Gateway. */
function chosenGateway(
  { gateways }: Translation,
  named: string | undefined,
): readonly [ObjectKey, GatewayTranslation] {
  const keys = [...gateways.keys()].sort()
  const [first] = keys
  const key = named === undefined || named.includes('/') ? (named ?? first) : `default/${named}`
  const translation = key === undefined ? undefined : gateways.get(key)
  if (named === undefined && keys.length > 1) {
    throw new ConfigRejected([
      `the manifests have ${keys.length} Gateways: name one with --gateway: ${keys.join(', ')}`,
    ])
  }
  if (key !== undefined && translation !== undefined) return [key, translation]
  if (named !== undefined && first !== undefined) {
    throw new ConfigRejected([`Gateway "${named}" is not in the manifests: name one of ${keys.join(', ')}`])
  }
  throw new ConfigRejected([
    'no Gateway in the manifests has a GatewayClass with controllerName tollgate.dev/controller',
  ])
}

/** Creates a function that logs the problems of objects that were not logged before. */
function createReporter(log: LogSink) {
  let known: ReadonlySet<string> = new Set()
  return (manifests: Manifests, translation: Translation, { parameters }: GatewayTranslation): void => {
    const lines = new Set(problemsOf(manifests, translation))
    const env = parameters?.env ?? []
    if (env.length > 0)
      lines.add('env of GatewayParameters is not applied to this process: set it at its start')
    for (const reason of lines) if (!known.has(reason)) log.warn({ reason }, 'manifest problem found')
    known = lines
  }
}

function problemsOf(manifests: Manifests, translation: Translation): string[] {
  const objects = checkObjects(manifests, translation).flatMap(
    ({ kind, key, place, outcome, conditions, mistakes }) => {
      const where = `${place === undefined ? '' : `${place.file}:${place.line}: `}${kind} ${key}`
      const detached = outcome === 'detached' ? ['no Gateway of this controller uses it'] : []
      const violated = conditions.filter(isViolated).map(({ type, reason, message, of }) => {
        const part = of === '' ? '' : ` of ${of}`
        return `${type}${part}: ${reason}${message === '' ? '' : `: ${message}`}`
      })
      return [...mistakesOf({ conditions, mistakes }), ...detached, ...violated].map(
        (problem) => `${where}: ${problem}`,
      )
    },
  )
  return [...manifests.warnings.map(({ file, line, message }) => `${file}:${line}: ${message}`), ...objects]
}
