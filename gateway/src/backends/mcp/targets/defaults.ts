import type { Send } from '../../../net/http-client/send.ts'
import type { BackendPolicies } from '../../../upstream/config.ts'
import { mergePolicies } from '../../../upstream/destination.ts'

/** Policies of an endpoint for requests to all of its targets. Those of a target take precedence. */
export type TargetPolicies = {
  /** The most specific first; the first definition of a key applies. */
  readonly levels: readonly (BackendPolicies | undefined)[]
  readonly timeoutMs: number | undefined
  readonly retry: TargetRetry | undefined
}

/** Repeats requests of `send`. `node` is its configuration. */
export type TargetRetry = {
  readonly node: object
  /** `always`: the server may receive every request more than once. `byMethod`: as configured. */
  decorate(send: Send, repeats: 'always' | 'byMethod'): Send
}

/** Compiled defaults of targets. */
export type TargetDefaults = Omit<TargetPolicies, 'levels'> & { readonly policies: BackendPolicies }

/** Merges the levels. */
export function compileDefaults({ levels, ...rest }: TargetPolicies): TargetDefaults {
  return { ...rest, policies: mergePolicies(levels) }
}

/** Configuration nodes of the defaults; empty without defaults, except for the time limit. */
export function nodesOfDefaults({ levels, retry }: TargetPolicies): object[] {
  const nodes = levels.flatMap((level) => Object.values(level ?? {}))
  return [...nodes.filter((node) => node !== undefined), ...(retry === undefined ? [] : [retry.node])]
}

/** `send` of a target, and the same for messages that servers may receive more than once. */
export type TargetSends = { readonly send: Send; readonly sendAgain: Send }

/** Applies the retries of the defaults. */
export function withRetries(send: Send, retry: TargetRetry | undefined): TargetSends {
  if (retry === undefined) return { send, sendAgain: send }
  return { send: retry.decorate(send, 'byMethod'), sendAgain: retry.decorate(send, 'always') }
}
