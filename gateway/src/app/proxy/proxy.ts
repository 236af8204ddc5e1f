import { randomBytes } from 'node:crypto'
import * as files from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { ConfigRejected, reasonsOf } from '../../config/config-rejected.ts'
import type { Environment } from '../../config/load/environment.ts'
import { createValidatedParts } from '../../config/load/validate.ts'
import { createPersistedCopy, type PersistedCopy } from '../../kubernetes/stream/client/persisted-copy.ts'
import { type Subscription, subscribe } from '../../kubernetes/stream/client/subscription.ts'
import { objectOf } from '../../kubernetes/translate/object-of.ts'
import { systemClock } from '../../lib/clock.ts'
import { createYieldPoint } from '../../lib/scheduling/yielding.ts'
import type { ObjectView } from '../../resources/objects/objects.ts'
import type { Log } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics/metrics.ts'
import { type App, type AppOptions, startApp } from '../app.ts'
import { type ProxySettings, readProxySettings } from './settings.ts'
import { createStreamFeed } from './stream-feed.ts'

export type ProxyOptions = Omit<AppOptions, 'feed' | 'metrics' | 'drainDelayMs' | 'drainDeadlineMs'>

const idBytes = 16
/** Delay of another start after an error that is not of the configuration. */
const startAgainMs = 10_000

/**
 * Starts the gateway as a proxy of a cluster: its configuration comes from the controller, or from the
 * persisted copy. Resolves once it serves. Throws `ConfigRejected` for mistakes in the environment.
 */
export async function startProxy(options: ProxyOptions): Promise<App> {
  const read = readProxySettings(options.env)
  if (read.kind === 'mistakes') throw new ConfigRejected(read.mistakes)
  const { settings } = read
  const metrics = createMetrics()
  const yieldPoint = createYieldPoint(systemClock)
  const subscription = await subscribe({
    url: settings.controllerUrl,
    gateway: settings.gateway,
    proxy: hostname().toLowerCase(),
    id: randomBytes(idBytes).toString('base64url'),
    copy: openCopy(settings, options),
    readCa: () => files.readFile(settings.controllerCaFile, 'utf8'),
    readToken: () => files.readFile(settings.tokenFile, 'utf8'),
    onStatus: metrics.configStream,
    clock: systemClock,
    random: Math.random,
    log: options.log,
    yieldPoint,
  })
  const validated = createValidatedParts()
  const view = viewOf(subscription, settings.gateway)
  const startOnce = () =>
    startApp({
      ...options,
      metrics,
      drainDelayMs: settings.drainDelayMs,
      drainDeadlineMs: settings.drainDeadlineMs,
      feed: createStreamFeed({ subscription, validated, view, yieldPoint }),
    })
  const app = await startWhenAccepted(startOnce, subscription, options.log)
  return {
    killChildren: app.killChildren,
    async stop() {
      await app.stop()
      await subscription.close()
    },
  }
}

/**
 * Starts the app with the first configuration that it accepts. Errors are reported to the controller; they
 * may be of the configuration, which the next one corrects, or of the machine, such as a port in use.
 */
async function startWhenAccepted(
  start: () => Promise<App>,
  subscription: Subscription,
  log: Log,
): Promise<App> {
  for (;;) {
    try {
      return await start()
    } catch (error) {
      const errors = reasonsOf(error)
      for (const reason of errors) log.error({ reason }, 'configuration rejected, none is active')
      // A newer one may have arrived since.
      const next = subscription.after(subscription.settle({ kind: 'refused', errors }))
      await (error instanceof ConfigRejected ? next : Promise.race([next, delay(startAgainMs)]))
    }
  }
}

function openCopy(
  { stateDir, gateway }: ProxySettings,
  { env, log }: { env: Environment; log: Log },
): PersistedCopy | undefined {
  const sessionKey = env['SESSION_KEY'] ?? ''
  if (stateDir === undefined || sessionKey === '') {
    log.warn({}, 'configuration copy disabled: STATE_DIR and SESSION_KEY are required')
    return undefined
  }
  return createPersistedCopy({
    folder: stateDir,
    sessionKey,
    gateway,
    files,
    clock: systemClock,
    randomBytes,
    yieldPoint: createYieldPoint(systemClock),
    log,
  })
}

function viewOf(subscription: Subscription, gateway: string): ObjectView {
  return {
    readOnlyReason: 'the configuration comes from the objects of a cluster: change them with kubectl',
    objectOf: (config, path) => objectOf(config, path, gateway),
    status: subscription.status,
  }
}
