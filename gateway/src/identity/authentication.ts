import type { Reply } from '../net/http-client/send.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'
import type { CredentialLocation } from './credential-location.ts'

/** What looking for a credential came to; undefined where there is none to be had, and none is needed. */
export type AuthenticationOutcome =
  | { kind: 'refused'; reply: Reply }
  /** A good credential, and the places to clear of it: it is the gateway's, and no upstream may see it. */
  | { kind: 'accepted'; credential: string; locations: readonly CredentialLocation[] }
  | undefined

/** Looks for one kind of credential, and writes down whom it stands for. Leaves the request as it is. */
export type AuthenticationCheck = (
  exchange: Exchange,
) => AuthenticationOutcome | Promise<AuthenticationOutcome>

/**
 * Admits requests that pass every check. Credentials leave the request once all have been looked at: a gateway and its
 * route may ask for the same one, and the second must still find it.
 */
export function compileAuthentication(name: string, checks: readonly AuthenticationCheck[]): Policy {
  const [only] = checks
  if (only === undefined || checks.length > 1) {
    return { name, onRequest: (exchange) => runChecks(checks, exchange) }
  }
  return {
    name,
    onRequest(exchange) {
      const outcome = only(exchange)
      if (outcome instanceof Promise) return outcome.then((settled) => applyOutcome(exchange, settled))
      return applyOutcome(exchange, outcome)
    },
  }
}

async function runChecks(
  checks: readonly AuthenticationCheck[],
  exchange: Exchange,
): Promise<Reply | undefined> {
  const accepted: AuthenticationOutcome[] = []
  for (const check of checks) {
    const outcome = check(exchange)
    const settled = outcome instanceof Promise ? await outcome : outcome
    if (settled?.kind === 'refused') return settled.reply
    accepted.push(settled)
  }
  // The most specific check came first; what it accepted is what the client counts as authenticated with.
  for (const outcome of accepted.toReversed()) applyOutcome(exchange, outcome)
  return undefined
}

function applyOutcome(exchange: Exchange, outcome: AuthenticationOutcome): Reply | undefined {
  if (outcome === undefined) return undefined
  if (outcome.kind === 'refused') return outcome.reply
  for (const location of outcome.locations) location.remove(exchange.facts, outcome.credential)
  exchange.auth.credential = outcome.credential
  return undefined
}
