import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../lib/clock.ts'
import type { Delivery } from '../http/incoming-request.ts'
import type { Reply } from '../http-client/send.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import type { HttpConnection } from '../listener/connection-handler.ts'

/** What every request of one server shares. */
export type Http1Edge = {
  readonly clock: Clock
  readonly stalledReaderMs: number
  readonly maxPipelinedRequests: number
  /** Instruments of requests under way. */
  readonly requests: AdmissionMeter
  /** By socket, as requests know it. */
  readonly connections: WeakMap<object, Http1Connection>
  draining: boolean
  closeIdle(): void
}

export type Http1Connection = HttpConnection & {
  /** Requests that have arrived and whose answers are not complete. */
  underWay: number
  /** Those of them that are not answered yet (`http1-pipeline.ts`). */
  readonly pipelined: PipelinedRequest[]
  /** Ends the requests whose answers wait for those of earlier ones: Node reports the end of a connection to the first only. */
  readonly awaitingTurn: Set<() => void>
  /** The request after which the connection closes, where one is known to be the last. */
  last: IncomingMessage | undefined
}

/** How a request came, beyond its message. */
export type RequestMode = {
  /** The client sends its body once it is told to. */
  readonly awaitsContinue: boolean
  readonly upgrade: string | undefined
  /** Takes a 101 answer to the client, and the connection with it, until `ended`. Only where there is an `upgrade`. */
  readonly openTunnel: ((reply: Reply, delivery: Delivery, ended: () => void) => void) | undefined
}

/** A request that waits for earlier ones of its connection. */
export type PipelinedRequest = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly mode: RequestMode
}
