import type { Clock } from '../lib/clock.ts'
import type { ThreadPool } from '../lib/scheduling/thread-pool.ts'
import type { WorkQueue } from '../lib/scheduling/work-queue.ts'
import type { EgressSources } from '../net/egress/egress.ts'
import type { GrpcClient } from '../net/grpc-client.ts'
import type { Send } from '../net/http-client/send.ts'
import type { SpawnProcess } from '../process/child-process.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'

/** What compiling a Config needs from the outside. */
export type CompileContext = {
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  /** Calls whose connection has no egress policy are subject to that of destinations in the file. */
  readonly send: Send
  readonly egress: EgressSources
  /** Calls of services that speak gRPC. */
  readonly grpc: GrpcClient
  /** Key that values given to clients are sealed with: 64 hexadecimal digits. Undefined where each process makes its own. */
  readonly sessionKey?: string | undefined
  /** Starts the programs of stdio targets. */
  readonly spawn: SpawnProcess
  /** The plain value of YAML text, for documents the Config leads to; throws an error that says what is wrong with it. */
  readonly parseYaml: (text: string) => unknown
  /** Threads for work that would stop the event loop. */
  readonly threads: ThreadPool
  /** Large work on the thread that serves traffic. */
  readonly workQueue: WorkQueue
  readonly log: Log
  readonly metrics: Metrics
  /** Content of a file the Config names (`apiKey: {file}`); throws with the file's path when unreadable. */
  readonly readFile: (path: string) => string
  /** The result of `create`, cached by configuration node and purpose. Unchanged nodes are the same objects after a reload. */
  cached<T>(node: object, purpose: string, create: () => T): T
  /** State that outlives reloads (counters, health), by name. Released when no snapshot references it. */
  retained<T extends object>(name: string, create: () => T): T
}
