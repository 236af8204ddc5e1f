import type { KeepAliveProbes } from '../tcp/keep-alive.ts'

/** Settings of accepted connections; absent ones have their defaults. */
export type ConnectionSettings = {
  readonly probes?: KeepAliveProbes | undefined
  /** Age at which an HTTP connection ends with its pending requests. */
  readonly maxDurationMs?: number | undefined
  readonly http1: {
    /** How long a connection without requests stays open. */
    readonly idleMs?: number | undefined
    /** Most header lines of a request. */
    readonly maxHeaders?: number | undefined
  }
  readonly http2: Http2Settings
}

export type Http2Settings = {
  /** Bytes of flow control windows and frames. */
  readonly windowSize?: number | undefined
  readonly connectionWindowSize?: number | undefined
  readonly maxFrameSize?: number | undefined
  readonly maxHeaderBytes?: number | undefined
  /** Time between pings on connections with open streams. */
  readonly pingIntervalMs?: number | undefined
  readonly pingTimeoutMs?: number | undefined
}
