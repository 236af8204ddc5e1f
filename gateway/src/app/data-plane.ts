import { readFileSync } from 'node:fs'
import { type CompileCache, createCompileCache } from '../config/live/compile-cache.ts'
import { createLiveListeners, type LiveListeners } from '../config/live/listeners.ts'
import type { Environment } from '../config/load/environment.ts'
import { createProvenance, type Provenance } from '../config/load/provenance.ts'
import { admissionLimitsOf, upstreamLimitsOf } from '../config/process-limits.ts'
import type { Config } from '../config/schema.ts'
import { parseYaml } from '../config/yaml/yaml.ts'
import type { Clock } from '../lib/clock.ts'
import { createLocalMemory, type Memory } from '../lib/planes/memory.ts'
import { createSinglePlane } from '../lib/planes/peers.ts'
import type { ThreadPool } from '../lib/scheduling/thread-pool.ts'
import { createWorkQueue } from '../lib/scheduling/work-queue.ts'
import { createEgressPolicies } from '../net/egress/policies.ts'
import { createGrpcClient } from '../net/grpc-client.ts'
import { defaultServerLimits } from '../net/http/incoming-request.ts'
import { createHttpClient } from '../net/http-client/http-client.ts'
import { createAdmission } from '../net/listener/admission.ts'
import type { ConnectionHandler, HttpHandler } from '../net/listener/connection-handler.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { createPipeline } from '../pipeline/pipeline.ts'
import type { Listener } from '../pipeline/snapshot.ts'
import { createChildProcesses } from '../process/child-process.ts'
import type { LogSink } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import { openServer } from './open-server.ts'

export type DataPlaneOptions = {
  settings: NonNullable<Config['config']>
  env: Environment
  clock: Clock
  log: LogSink
  metrics: Metrics
  threads: ThreadPool
  adminPort(): number
  /** Reason why no traffic may be served yet. */
  unavailable(): string | undefined
}

/** Listeners, clients and child processes, and the context that configurations are compiled with. */
export type DataPlane = {
  context: CompileContext
  cache: CompileCache
  provenance: Provenance
  listeners: LiveListeners
  /** Stops accepting; resolves after the last request and the reports that follow it. */
  drain(): Promise<void>
  /** Kills child processes without a grace period. */
  killChildren(): void
  close(): Promise<void>
}

const connectTimeoutMs = 10_000
const upstreamKeepAliveMs = 60_000
/** Models compute for minutes before the first byte of an unstreamed response. */
const firstByteTimeoutMs = 600_000
const idleTimeoutMs = 300_000

/** Programs of stdio targets alive at the same time, one for each session at each target. */
const maxChildren = 5_000
const childCloseGraceMs = 1_000
const childTerminateGraceMs = 2_000

export function createDataPlane(options: DataPlaneOptions): DataPlane {
  const { settings, env, clock, log, metrics, threads } = options
  const policies = createEgressPolicies({
    adminPort: options.adminPort,
    allowsMetadata: settings.storage?.allowMetadataAddresses === true,
    fileIsWritable: (settings.storage?.mode ?? 'file') === 'file',
  })
  const provenance = createProvenance()
  const client = createHttpClient({
    egress: policies.file,
    ...upstreamLimitsOf(settings.limits ?? {}),
    calls: metrics.admission('upstream_calls'),
    connectTimeoutMs,
    keepAliveMs: upstreamKeepAliveMs,
    firstByteTimeoutMs,
    idleTimeoutMs,
  })
  const grpc = createGrpcClient()
  const children = createChildProcesses({
    // Programs must not receive the key that seals session ids.
    environment: { ...env, SESSION_KEY: undefined },
    maxChildren,
    closeGraceMs: childCloseGraceMs,
    terminateGraceMs: childTerminateGraceMs,
  })
  const cache = createCompileCache((path) => readFileSync(path, 'utf8'))
  const context: CompileContext = {
    clock,
    random: Math.random,
    send: client.send,
    egress: {
      of: (node) => (provenance.isFromApi(node) ? policies.api : policies.file),
      document: policies.document,
    },
    grpc,
    log,
    metrics,
    spawn: children.spawn,
    parseYaml,
    threads,
    workQueue: createWorkQueue(clock),
    memory: createLocalMemory(),
    peers: createSinglePlane(),
    ...cache,
  }
  const listeners = createListeners(options, context.memory)

  return {
    context,
    cache,
    provenance,
    listeners,
    async drain() {
      await listeners.drain()
      // The usage of the last requests is reported after them.
      await grpc.drain()
    },
    killChildren: children.killAll,
    async close() {
      listeners.close()
      grpc.close()
      threads.close()
      await Promise.all([children.close(), client.close()])
    },
  }
}

function createListeners(
  { settings, clock, log, metrics, unavailable }: DataPlaneOptions,
  memory: Memory,
): LiveListeners {
  const unrouted = metrics.route('')
  const admission = createAdmission(admissionLimitsOf(settings.limits ?? {}), metrics.admission, memory)
  return createLiveListeners((opened, find) => {
    const { key, host, port } = opened
    const handle = createPipeline({ listener: () => find(key), log, clock, unrouted, unavailable })
    return openServer({
      host,
      port,
      clock,
      limits: defaultServerLimits,
      admission,
      // A connection may arrive before the commit of the snapshot that opened the address.
      serve() {
        const listener = find(key) ?? opened
        return listener.kind === 'tcp' && unavailable() !== undefined
          ? undefined
          : connectionHandlerOf(listener, handle)
      },
    })
  })
}

function connectionHandlerOf(listener: Listener, handle: HttpHandler['handle']): ConnectionHandler {
  const { tls, isProxy } = listener
  if (listener.kind === 'http') return { kind: 'http', tls, isProxy, handle }
  const { readsServerName = false, connect } = listener
  return { kind: 'tcp', tls, isProxy, readsServerName, connect }
}
