import type { ErrorFormat, RequestFacts } from './exchange.ts'
import type { RouteMeter } from './metrics.ts'
import type { Backend, Policy } from './policy.ts'

/** Where a request goes: the policies it passes, in order, and who answers. */
export type Route = {
  readonly name: string
  readonly policies: readonly Policy[]
  readonly backend: Backend
  readonly meter: RouteMeter
  /** Shape of refusals for a request of this route. Called once per request, so it must be cheap. */
  errorFormat(request: RequestFacts): ErrorFormat
}

/** One listening address. */
export type Listener = {
  /** Identity across reloads: `host:port`. */
  readonly key: string
  readonly host: string
  readonly port: number
  /** The route of a request, or undefined for 404. */
  match(request: RequestFacts): Route | undefined
  /** Ends what the listener holds beyond requests, such as sessions. Called when it goes away. */
  stop?: () => Promise<void>
}

/** A Config compiled: immutable, swapped whole. */
export type Snapshot = {
  readonly listeners: ReadonlyMap<string, Listener>
}
