/** State of the stream from which a proxy of a cluster receives its configuration. */
export type StreamStatus = {
  /** Whether a stream of the controller is open. */
  readonly connected: boolean
  /** Version that serves; undefined before the first one. */
  readonly version: string | undefined
  /** Source of the version that serves: the stream, or the persisted copy of an earlier process. */
  readonly source: 'controller' | 'copy' | undefined
  /** Time of the last confirmation by the controller, ISO 8601; of a copy, the time of its write. */
  readonly confirmedAt: string | undefined
  /** Seconds since then. */
  readonly ageSeconds: number | undefined
  /** Reason of the end of the last stream, while none is open. */
  readonly lastError: string | undefined
}
