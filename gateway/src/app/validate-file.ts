import { readFileSync } from 'node:fs'
import { compileConfig } from '../config/compile.ts'
import { ConfigRejected } from '../config/config-rejected.ts'
import { createCompileCache } from '../config/live/compile-cache.ts'
import { readConfigFile } from '../config/load/config-file.ts'
import type { Environment } from '../config/load/environment.ts'
import type { Config } from '../config/schema.ts'
import { parseYaml } from '../config/yaml/yaml.ts'
import { systemClock } from '../lib/clock.ts'
import { createLocalMemory } from '../lib/planes/memory.ts'
import { createSinglePlane } from '../lib/planes/peers.ts'
import { createWorkQueue } from '../lib/scheduling/work-queue.ts'
import { messageOf } from '../lib/thrown.ts'
import { anywhere } from '../net/egress/egress.ts'
import { createGrpcClient } from '../net/grpc-client.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { webhookLimits } from '../policies/guardrails/kinds/webhook/limits.ts'
import { createMetrics } from '../telemetry/metrics/metrics.ts'
import { acceptedConfig, loadConfig } from './config-tasks.ts'

/**
 * Validates a configuration file as `--validate-only` does: its text, the environment, the files that it
 * names, and its compilation. Opens no port and no connection. Throws `ConfigRejected`, or the error of an
 * unreadable file.
 */
export async function validateConfigFile(
  file: string,
  env: Environment,
  warn: (line: string) => void = () => {},
): Promise<Config> {
  const config = acceptedConfig(loadConfig({ text: readConfigFile(file), file, env }))
  await compileOffline(config, env, warn)
  return config
}

/** Compiles a valid configuration without network and ports. Throws `ConfigRejected`. */
export async function compileOffline(
  config: Config,
  env: Environment,
  warn: (line: string) => void,
): Promise<void> {
  const facts = {
    version: '',
    sessionKey: env['SESSION_KEY'],
    loginSecrets: env['OIDC_COOKIE_SECRET'] || undefined,
    webhooks: webhookLimits(env),
    ui: () => () => ({ status: 503, headers: {}, body: undefined }),
  }
  await compileConfig(config, offlineContext(env, warn), facts).catch((error: unknown) => {
    throw new ConfigRejected([messageOf(error)])
  })
}

const unusedCall = () => Promise.reject(new Error('not used by compilation'))

/** Context of a compilation without network, processes and threads. */
function offlineContext(environment: Environment, warn: (line: string) => void): CompileContext {
  return {
    environment,
    objectRecords: undefined,
    exchangeLeases: unusedCall,
    cachedRows: { read: unusedCall, write: unusedCall },
    clock: systemClock,
    random: Math.random,
    send: () => Promise.reject(new Error('the network is not available during validation')),
    grpc: createGrpcClient(),
    log: {
      debug() {},
      info() {},
      warn: (fields, message) => warn(warningLine(fields, message)),
      error() {},
      audit() {},
    },
    egress: { of: () => anywhere, document: anywhere },
    metrics: createMetrics(),
    exporters: { track() {} },
    spawn: () => {
      throw new Error('processes are not available during validation')
    },
    parseYaml,
    threads: {
      run: () => Promise.reject(new Error('threads are not available during validation')),
      close() {},
    },
    workQueue: createWorkQueue(systemClock),
    memory: createLocalMemory(),
    peers: createSinglePlane(),
    processKey: new Uint8Array(32),
    ...createCompileCache((path) => readFileSync(path, 'utf8')),
  }
}

function warningLine(fields: object, message: string): string {
  const details = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
  return `warning: ${message} (${details.join(', ')})`
}
