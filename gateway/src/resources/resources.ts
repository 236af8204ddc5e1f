import type { PreparedConfig } from '../config/live/live.ts'
import type { StreamStatus } from '../config/live/stream-status.ts'
import type { ConfigTree } from '../config/load/validate.ts'
import type { Config } from '../config/schema.ts'
import type { ChangeOutcome, ChangeRequest, Envelope, Refusal } from './change/change.ts'
import type { FoundText, TextChangeOutcome, TextChangeRequest } from './file/text-change.ts'
import type { Problem } from './hybrid/record-index.ts'
import type { Kind } from './kinds.ts'
import type { FileIndex } from './records/file-index.ts'
import type { HistoryPage, HistoryQuery } from './stores/store.ts'

/** The process whose configuration the resources change. */
export type ResourceHost = {
  /** Compiles a valid configuration and opens its ports. Throws without effects if that fails. */
  prepare(config: Config): Promise<PreparedConfig>
  /** Marks a value from the config API: its destinations are subject to the egress policy of the API. */
  markApi(value: unknown): void
  /** Reports that the sources cannot be activated. */
  report(lastError: string): void
  /** Reports an outage of the database; undefined ends it. */
  reportDatabase(lastError: string | undefined): void
  /** Serialises changes of the configuration from all sources. */
  exclusive<T>(change: () => Promise<T>): Promise<T>
}

/** Client that requests a change, for the audit log and the history. */
export type Requester = {
  readonly address: string
  readonly principal?: string | undefined
  readonly requestId: string
}

export type StorageStatus = {
  readonly mode: 'file' | 'hybrid' | 'readOnly' | 'objects'
  readonly database?: {
    /** `pending` until the first read; `lost` during an outage. */
    readonly state: 'pending' | 'connected' | 'lost'
    readonly lastError?: string | undefined
    /** Generation of the database as last read. */
    readonly generation: number
    readonly records: number
    /** Records that are not part of the configuration. */
    readonly problems: readonly Pick<Problem, 'kind' | 'id' | 'reason'>[]
    /** `<kind> <id>` of records that are not active because the file has the same entry. */
    readonly shadowed: readonly string[]
  }
  /** Stream of a controller; absent outside of clusters. */
  readonly stream?: StreamStatus
}

export type ListedResources = { readonly kind: 'listed'; readonly envelopes: Iterable<Envelope> }
export type FoundResource = { readonly kind: 'found'; readonly envelope: Envelope }

export type FoundHistory = HistoryPage & { readonly kind: 'history' }

/** The configuration file as a text. */
export type FileText = {
  readonly path: string
  /** Refusal of every change; undefined if the file can be changed. */
  readonly readOnly: Refusal | undefined
  read(): Promise<FoundText | Refusal>
  /** Replaces the text: validated, written atomically and active before the outcome is returned. */
  replace(request: TextChangeRequest, requester: Requester): Promise<TextChangeOutcome | Refusal>
}

/** Config resources of a process, and the configuration composed of them and the file. */
export type Resources = {
  /**
   * Activates a loaded configuration of the file with the records of the database. Throws `ConfigRejected` or
   * an error of `prepare`; the previous configuration then remains active. To be called inside `exclusive`,
   * except at start.
   */
  useFile(config: Config): Promise<void>
  /**
   * Activates the same configuration again, after a change of a file that it names. To be called inside
   * `exclusive`.
   */
  reapply(): Promise<void>
  /** Reason why the configuration is incomplete, so that no traffic may be served. */
  pending(): string | undefined
  /** Current records, created on iteration. */
  list(kind: Kind | undefined): ListedResources | Refusal
  /** `id` is an id, or the name of a named record. */
  find(kind: Kind, id: string): FoundResource | Refusal
  change(request: ChangeRequest, requester: Requester): Promise<ChangeOutcome>
  /** Reads recorded changes, latest first. Refused if changes are not recorded. */
  history(query: HistoryQuery): Promise<FoundHistory | Refusal>
  /** The configuration file as a text; undefined if the configuration has no file. */
  readonly text?: FileText | undefined
  /** Resolves after all changes in progress. */
  idle(): Promise<void>
  /** The active configuration, or that of the file before activation; and the configuration of the file. */
  effective(): {
    readonly config: ConfigTree
    readonly file: ConfigTree
    /** Lines and references of the text of the file, if there is one. */
    readonly fileIndex?: FileIndex | undefined
    /** Object of a part, `<kind>/<namespace>/<name>`, if the configuration comes from objects. */
    readonly objectOf?: (path: readonly (string | number)[]) => string | undefined
  }
  status(): StorageStatus
  close(): Promise<void>
}
