import type { Reply } from '../net/http-client/send.ts'
import type { Exchange } from './exchange.ts'

type Awaitable<T> = T | Promise<T>

/**
 * Functions around a backend. Order is data: a route holds its policies as one flat array.
 * A policy stops a request by returning a reply; it throws only for the unexpected.
 */
export type Policy = {
  readonly name: string
  /** Runs in order. A returned reply ends the request phase; later policies are never entered. */
  onRequest?(exchange: Exchange): Awaitable<Reply | undefined>
  /** Runs in reverse order for every policy that was entered, the one that refused included. May change the reply in place. */
  onReply?(exchange: Exchange, reply: Reply): Awaitable<Reply>
  /** Runs once after the last byte, or when the client has gone, for every policy that was entered. Must not throw. */
  onEnd?(exchange: Exchange): void
}

/** Answers a request that passed every policy. */
export type Backend = (exchange: Exchange) => Awaitable<Reply>
