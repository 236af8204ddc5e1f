import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'

/** Destination address of a connection before it is opened. */
export type EgressTarget = {
  /** Host as requested: a name or an IP address. */
  readonly host: string
  /** Resolved IP address of `host`. */
  readonly address: string
  readonly port: number
}

/**
 * Policy on the addresses of outgoing connections. It checks the resolved address in the lookup of the
 * connection itself, so that no second resolution can differ from the checked one.
 */
export type EgressPolicy = {
  /** Part of pool keys: a connection opened under one policy never serves another. */
  readonly key: string
  /** Returns the reason of a rejected address, undefined for an allowed one. */
  refuses(target: EgressTarget): string | undefined
  /** Whether connections to Unix domain sockets are permitted. Default: none. */
  readonly allowsSockets?: boolean | undefined
  /**
   * Destinations of tokens that identify this machine. Without a value, the configuration with this policy
   * must not use such an identity.
   */
  readonly identityHosts?: IdentityHosts | undefined
  /**
   * Whether configuration with this policy is written by the operator, beside that of others. Its credentials
   * are sent to hosts of such configuration only.
   */
  readonly isOfOperator?: boolean | undefined
}

/**
 * Hosts that receive tokens of an identity of this machine: `any`, `own` beside hosts of the cloud only those
 * configured together with the credential, `cloud` only hosts of the cloud that issues the tokens.
 */
export type IdentityHosts = 'any' | 'own' | 'cloud'

/** Egress policies by the source of a destination. */
export type EgressSources = {
  /**
   * Policy of destinations configured in this object of the Config, which may be from the file or the API.
   */
  of(node: object): EgressPolicy
  /** Policy of destinations from a fetched document. */
  readonly document: EgressPolicy
}

/** `code` of the error of a rejected connection. */
export const egressRefused = 'ERR_EGRESS_REFUSED'

/** Policy without restrictions. */
export const anywhere: EgressPolicy = { key: '', refuses: () => undefined, identityHosts: 'any' }

/** Lookup for a connection to `port` that returns only allowed addresses, and fails without one. */
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

/**
 * Returns the error for a rejected IP address literal, for which sockets call no lookup; undefined for all
 * other hosts.
 */
export function refusedLiteral(policy: EgressPolicy, host: string, port: number): Error | undefined {
  if (isIP(host) === 0) return undefined
  const reason = policy.refuses({ host, address: host, port })
  return reason === undefined ? undefined : refusal(reason)
}

/** Returns the error for a Unix domain socket, unless the policy permits them. */
export function refusedSocket(policy: EgressPolicy, path: string): Error | undefined {
  if (policy.allowsSockets === true) return undefined
  return refusal(`unix:${path} is a socket of this machine, which only the configuration file may name`)
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
