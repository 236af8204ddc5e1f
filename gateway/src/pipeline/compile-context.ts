import type { Clock } from '../lib/clock.ts'
import type { CachedRows } from '../lib/planes/cached-rows.ts'
import type { ExchangeLeases } from '../lib/planes/lease-exchange.ts'
import type { Memory } from '../lib/planes/memory.ts'
import type { CallObjectRecords } from '../lib/planes/object-records.ts'
import type { Peers } from '../lib/planes/peers.ts'
import type { ThreadPool } from '../lib/scheduling/thread-pool.ts'
import type { WorkQueue } from '../lib/scheduling/work-queue.ts'
import type { EgressSources } from '../net/egress/egress.ts'
import type { GrpcClient } from '../net/grpc-client.ts'
import type { Send } from '../net/http-client/send.ts'
import type { SpawnProcess } from '../process/child-process.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { ExporterSet } from '../telemetry/otlp/exporter-set.ts'

/** Dependencies of compiling a configuration. */
export type CompileContext = {
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  /**
   * Sends HTTP requests. Without an egress policy on the connection, the policy of file destinations applies.
   */
  readonly send: Send
  readonly egress: EgressSources
  /** Client of gRPC services. */
  readonly grpc: GrpcClient
  /**
   * Key that seals values issued to clients: 64 hexadecimal digits. Undefined if each process generates its
   * own.
   */
  readonly sessionKey?: string | undefined
  /** Secrets of login cookies, separated by commas: `OIDC_COOKIE_SECRET` of the environment. */
  readonly loginSecrets?: string | undefined
  /** Random key of the process: seals values issued to clients if there is no session key. */
  readonly processKey: Uint8Array
  /** Environment variables that identify the gateway at cloud vendors, such as `AZURE_CLIENT_ID`. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Starts the programs of stdio targets. */
  readonly spawn: SpawnProcess
  /** Parses YAML text of documents that the configuration refers to; throws with the mistake. */
  readonly parseYaml: (text: string) => unknown
  /** Threads for work that would block the event loop. */
  readonly threads: ThreadPool
  /** Large work on the thread that serves traffic. */
  readonly workQueue: WorkQueue
  /** Memory shared by the data planes of the process. */
  readonly memory: Memory
  /** The other data planes of the process. */
  readonly peers: Peers
  /** Exchanges the use of limits with `scope: shared` for leases. */
  readonly exchangeLeases: ExchangeLeases
  /** Files and batches of clients, for lists; undefined without a database. */
  readonly objectRecords: CallObjectRecords | undefined
  /** Responses with `store: database`. */
  readonly cachedRows: CachedRows
  readonly log: Log
  readonly metrics: Metrics
  /** Receives exporters of telemetry, which are flushed at shutdown. */
  readonly exporters: Pick<ExporterSet, 'track'>
  /** Reads a file named in the configuration (`apiKey: {file}`); throws with the path if unreadable. */
  readonly readFile: (path: string) => string
  /** Reads a file at each call, for content that changes without a reload; throws as `readFile`. */
  readonly readFileNow: (path: string) => string
  /**
   * The result of `create`, cached by configuration node and purpose. Unchanged nodes are the same objects
   * after a reload.
   */
  cached<T>(node: object, purpose: string, create: () => T): T
  /** State that outlives reloads (counters, health), by name. Released when no snapshot references it. */
  retained<T extends object>(name: string, create: () => T): T
}
