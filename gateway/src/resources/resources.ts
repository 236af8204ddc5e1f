import type { PreparedConfig } from '../config/live/live.ts'
import type { ConfigTree } from '../config/load/validate.ts'
import type { Config } from '../config/schema.ts'
import type { ChangeOutcome, ChangeRequest, Envelope, Refusal } from './change/change.ts'
import type { Problem } from './hybrid/record-index.ts'
import type { Kind } from './kinds.ts'

/** What storage needs of the process whose configuration it changes. */
export type ResourceHost = {
  /** Compiles a valid configuration and opens its ports. Throws when that cannot be done; nothing has changed then. */
  prepare(config: Config): Promise<PreparedConfig>
  /** Marks a value that came through the config API: its destinations are subject to the egress policy of the API. */
  markApi(value: unknown): void
  /** Notes that the sources say something that cannot run. */
  report(lastError: string): void
  /** Notes an outage of the database; undefined ends it. */
  reportDatabase(lastError: string | undefined): void
  /** Runs changes of the configuration one after another, whoever makes them. */
  exclusive<T>(change: () => Promise<T>): Promise<T>
}

/** Who asks for a change, for the audit log. */
export type Requester = { readonly address: string; readonly principal?: string | undefined }

export type StorageStatus = {
  readonly mode: 'file' | 'hybrid' | 'readOnly'
  readonly database?: {
    /** `pending` until it was read once; `lost` while it cannot be reached. */
    readonly state: 'pending' | 'connected' | 'lost'
    readonly lastError?: string | undefined
    /** Number of the last change that is known. */
    readonly generation: number
    readonly records: number
    /** Records that are not part of the configuration. */
    readonly problems: readonly Pick<Problem, 'kind' | 'id' | 'reason'>[]
    /** `<kind> <id>` of records that do not count because the file says the same. */
    readonly shadowed: readonly string[]
  }
}

export type ListedResources = { readonly kind: 'listed'; readonly envelopes: Iterable<Envelope> }
export type FoundResource = { readonly kind: 'found'; readonly envelope: Envelope }

/** Config resources of a process, and the configuration composed of them and the file. */
export type Resources = {
  /**
   * Takes the file's configuration as it was loaded, and runs it with what the database has. Throws what `prepare` throws,
   * or `ConfigRejected`; the previous configuration runs on then. To be called inside `exclusive`, except at the start.
   */
  useFile(config: Config): Promise<void>
  /** The same configuration once more: a file that it names has changed. To be called inside `exclusive`. */
  reapply(): Promise<void>
  /** Why the configuration is not complete yet, so that no traffic may be served. */
  pending(): string | undefined
  /** The records as they are now, made while they are read. */
  list(kind: Kind | undefined): ListedResources | Refusal
  /** `id` is an id, or the name of a named record. */
  find(kind: Kind, id: string): FoundResource | Refusal
  change(request: ChangeRequest, requester: Requester): Promise<ChangeOutcome>
  /** Resolves when the changes under way have their outcomes. */
  idle(): Promise<void>
  /** What runs, or would if it could; and where its records are from. */
  effective(): { readonly config: ConfigTree; readonly file: ConfigTree }
  status(): StorageStatus
  close(): Promise<void>
}
