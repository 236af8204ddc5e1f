import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../lib/clock.ts'
import type { Turns } from '../../lib/scheduling/turns.ts'
import type { Delivery } from '../http/incoming-request.ts'
import type { Reply } from '../http-client/send.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import type { HttpConnection } from '../listener/connection-handler.ts'

/** State shared by all requests of one HTTP/1 server. */
export type Http1Edge = {
  readonly clock: Clock
  /** End of the reads of a turn, when complete responses are written. */
  readonly turns: Turns
  readonly stalledReaderMs: number
  readonly maxPipelinedRequests: number
  /** Meter of active requests. */
  readonly requests: AdmissionMeter
  /** Connections by the socket that requests expose. */
  readonly connections: WeakMap<object, Http1Connection>
  /** Whether the next response of each connection is its last. */
  isLastResponse: boolean
  /** Most header lines of a request; undefined without a limit. */
  maxHeaders: number | undefined
  draining: boolean
  closeIdle(): void
}

export type Http1Connection = HttpConnection & {
  /** Requests received whose responses are incomplete. */
  underWay: number
  /** Pipelined requests without a response yet, oldest first (`pipelining.ts`). */
  readonly pipelined: PipelinedRequest[]
  /**
   * End functions of requests whose responses are queued behind earlier ones: Node reports the end of a
   * connection only to the first.
   */
  readonly awaitingTurn: Set<() => void>
  /** Whether the connection closes after its pending requests, because of its age. */
  isEnding: boolean
  /** The request after which the connection closes, if known. */
  last: IncomingMessage | undefined
  /** Ends the connection at its age; undefined without a limit. */
  ageTimer: NodeJS.Timeout | undefined
}

/** Properties of a request that are not part of its message. */
export type RequestMode = {
  /** The client sends the body after a 100 (Continue) response. */
  readonly awaitsContinue: boolean
  readonly upgrade: string | undefined
  /** Sends a 101 response and takes over the connection until `ended`. Defined only with `upgrade`. */
  readonly openTunnel: ((reply: Reply, delivery: Delivery, ended: () => void) => void) | undefined
}

/** A request queued behind earlier requests of its connection. */
export type PipelinedRequest = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly mode: RequestMode
}
