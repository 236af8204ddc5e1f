import type { Config } from '../config/schema.ts'
import type { ObjectView } from '../resources/objects/objects.ts'
import type { FileIndex } from '../resources/records/file-index.ts'

/** Source of the configuration: a file, a folder of manifests, or the stream of a controller. */
export type ConfigFeed = {
  /** Place of changes through the config resource API. */
  readonly origin: ConfigOrigin
  /**
   * Returns the latest configuration, valid by the schema, with unchanged parts as the same objects if the
   * feed knows them. Throws `ConfigRejected`, or the error of an unreadable source. One call at a time.
   */
  read(): Promise<Config>
  /** Watches for changes after the first `read`, until `close`. Called once. */
  watch(events: FeedEvents): void
  /** Receives the outcome of the configuration of the latest `read`. */
  settled(outcome: FeedOutcome): void
  close(): void
}

export type FeedEvents = {
  /** `read` may return another configuration. Several changes may be one event. */
  changed(): void
  /** The source cannot be read; the current configuration stays active. */
  failed(error: Error): void
}

export type FeedOutcome =
  | { readonly kind: 'active' }
  /** The previous configuration stays active; at start the process ends. */
  | { readonly kind: 'rejected'; readonly reasons: readonly string[] }

export type ConfigOrigin =
  | {
      readonly kind: 'file'
      readonly file: string
      /** Parses and validates a text of the file. Throws `ConfigRejected`. */
      load(text: string): Promise<Config>
      /** Called after the configuration of the last `load` was activated by a change through the API. */
      activated(): void
      /** Lines and references of the active text; undefined before the first, and for large texts in JSON. */
      index(): FileIndex | undefined
    }
  /** Objects of an API: the config resource API is a view of them. */
  | {
      readonly kind: 'objects'
      readonly from: 'manifests' | 'cluster'
      readonly view: ObjectView
    }
