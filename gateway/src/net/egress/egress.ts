import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'

/** An address a connection is about to be opened to. */
export type EgressTarget = {
  /** Host as the connection is asked for: a name, or an IP address. */
  readonly host: string
  /** IP address that `host` resolved to. */
  readonly address: string
  readonly port: number
}

/**
 * Addresses that outgoing connections may lead to. The check runs on the resolved address, in the lookup of the connection
 * itself, so that no second resolution can differ from the checked one.
 */
export type EgressPolicy = {
  /** Part of the keys of pools: a connection opened under one policy never serves another. */
  readonly key: string
  /** The reason to refuse the address, undefined if it is allowed. */
  refuses(target: EgressTarget): string | undefined
}

/** Egress policies by the source of a destination. */
export type EgressSources = {
  /** Policy of the destinations that this object of the Config names: it may come from the file or through the API. */
  of(node: object): EgressPolicy
  /** Policy of destinations that a fetched document names. */
  readonly document: EgressPolicy
}

/** `code` of the error of a connection that a policy refuses. */
export const egressRefused = 'ERR_EGRESS_REFUSED'

/** Policy without restrictions. */
export const anywhere: EgressPolicy = { key: '', refuses: () => undefined }

/** Lookup for a connection to `port` that returns only addresses the policy allows, and fails if there is none. */
export function guardedLookup(
  policy: EgressPolicy,
  port: number,
  lookup: LookupFunction = systemLookup,
): LookupFunction {
  return (host, options, done) => {
    lookup(host, { ...options, all: true }, (error, found, family) => {
      if (error) {
        done(error, [])
        return
      }
      const addresses =
        typeof found === 'string' ? [{ address: found, family: family ?? isIP(found) }] : found
      const allowed = addresses.filter(({ address }) => policy.refuses({ host, address, port }) === undefined)
      const [first] = allowed
      if (first === undefined) done(refusalOf(policy, { host, port }, addresses), [])
      else if (options.all === true) done(null, allowed)
      else done(null, first.address, first.family)
    })
  }
}

/** The error for a host that is a refused IP address, for which sockets call no lookup; undefined for all others. */
export function refusedLiteral(policy: EgressPolicy, host: string, port: number): Error | undefined {
  if (isIP(host) === 0) return undefined
  const reason = policy.refuses({ host, address: host, port })
  return reason === undefined ? undefined : refusal(reason)
}

function refusalOf(
  policy: EgressPolicy,
  { host, port }: { host: string; port: number },
  addresses: readonly LookupAddress[],
): Error {
  const [first] = addresses
  const reason = first && policy.refuses({ host, address: first.address, port })
  return reason === undefined ? new Error(`${host} has no address`) : refusal(reason)
}

function refusal(reason: string): Error {
  return Object.assign(new Error(reason), { code: egressRefused })
}
