import type { JsonValue } from '../lib/json/json.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { Exchange } from './exchange.ts'

type Awaitable<T> = T | Promise<T>

/**
 * What a policy checks again on a connection that stays open: its credential, each call, or the content of
 * messages.
 */
export type Repetition = 'credential' | 'call' | 'content'

/**
 * Functions around a backend. Order is data: a route has one flat array of policies.
 * A policy stops a request by returning a reply; it throws only for unexpected errors.
 */
export type Policy = {
  readonly name: string
  /** Undefined: the policy applies to the request of a connection only. */
  readonly repeats?: Repetition | undefined
  /** Has settings of single models, which connections of an earlier configuration do not have. */
  readonly isOfModels?: boolean
  /** Checks the request of a connection only, so that another one later needs another connection. */
  readonly isOfConnections?: boolean
  /**
   * Selects the policy that the request enters in place of this one; undefined for none. The selected policy
   * has the reply, the end and the explanation.
   */
  select?(exchange: Exchange): Policy | undefined
  /** Runs in order. A returned reply ends the request phase and skips later policies. */
  onRequest?(exchange: Exchange): Awaitable<Reply | undefined>
  /**
   * Runs in reverse order for every entered policy, including the one that refused. May change the reply in
   * place.
   */
  onReply?(exchange: Exchange, reply: Reply): Awaitable<Reply>
  /**
   * Runs once after the last byte or the disconnect of the client, for every entered policy. Must not throw.
   */
  onEnd?(exchange: Exchange): void
  /**
   * Describes the decision on a finished request that the policy has entered, for its explanation. Called for
   * explained requests only. Plain data with configured texts: no header values, contents, claims or
   * credentials. Undefined if there is nothing to describe.
   */
  explain?(exchange: Exchange): JsonValue | undefined
}

/** Handles a request that passed every policy. */
export type Backend = (exchange: Exchange) => Awaitable<Reply>
