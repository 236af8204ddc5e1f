/** Use of identities of this machine by one way of authentication. */
export type CloudIdentity = {
  /**
   * Whether a configuration, which may be invalid, uses an identity that the machine or the environment of
   * the process provides. Forms without a credential of their own must count as such.
   */
  usesMachine(config: unknown): boolean
  /**
   * Whether a host, in lower case, belongs to a service of the cloud. Hosts at which customers receive
   * requests themselves, such as functions and web applications, must not be among them.
   */
  isCloudHost(host: string): boolean
}

/** Predicate of hosts below one of these domains. */
export function hostsBelow(domains: readonly string[]): (host: string) => boolean {
  const ends = domains.map((domain) => `.${domain}`)
  return (host) => ends.some((end) => host.endsWith(end))
}
