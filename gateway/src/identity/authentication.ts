import type { Reply } from '../net/http-client/send.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'
import type { CredentialLocation } from '../upstream/credentials/credential-location.ts'

/** Result of an authentication check; undefined if the credential is absent and optional. */
export type AuthenticationOutcome =
  | { kind: 'refused'; reply: Reply }
  /** Valid credential, and the locations to remove it from: upstreams must not receive it. */
  | { kind: 'accepted'; credential: string; locations: readonly CredentialLocation[] }
  | undefined

/** Checks one kind of credential and records its subject in the facts. Does not modify the request. */
export type AuthenticationCheck = (
  exchange: Exchange,
) => AuthenticationOutcome | Promise<AuthenticationOutcome>

/**
 * Compiles checks to a policy that admits requests that pass all of them. Credentials are removed after the
 * last check: a gateway and its route may check the same credential.
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
  // The most specific check is the first; its credential identifies the client.
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
