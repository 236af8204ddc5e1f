import { anyHost, normaliseHostname } from '../../../../pipeline/routing/hostnames.ts'

/** The hostnames that routes of one kind have on a listener, with the first route of each. */
export type HostnameClaims = {
  add(hostnames: readonly string[], owner: string): void
  /** The first owner of a hostname in common with a list; undefined without one. No hostnames are all. */
  find(hostnames: readonly string[]): string | undefined
}

export function createHostnameClaims(): HostnameClaims {
  const exact = new Map<string, string>()
  /** By suffix, with its dot. */
  const wildcards = new Map<string, string>()
  /** Every suffix of an added hostname: a wildcard of it has a host in common. */
  const suffixes = new Map<string, string>()
  let everything: string | undefined
  let first: string | undefined

  return {
    add(hostnames, owner) {
      first ??= owner
      for (const hostname of listOf(hostnames)) {
        if (hostname === anyHost) {
          everything ??= owner
          continue
        }
        const isWildcard = hostname.startsWith('*.')
        if (isWildcard) setFirst(wildcards, hostname.slice(1), owner)
        else setFirst(exact, hostname, owner)
        for (const suffix of suffixesOf(hostname)) setFirst(suffixes, suffix, owner)
      }
    },
    find(hostnames) {
      if (everything !== undefined) return everything
      for (const hostname of listOf(hostnames)) {
        if (hostname === anyHost) return first
        const owner = hostname.startsWith('*.') ? suffixes.get(hostname.slice(1)) : exact.get(hostname)
        if (owner !== undefined) return owner
        for (const suffix of suffixesOf(hostname)) {
          const wide = wildcards.get(suffix)
          if (wide !== undefined) return wide
        }
      }
      return undefined
    },
  }
}

function listOf(hostnames: readonly string[]): readonly string[] {
  return hostnames.length === 0 ? [anyHost] : hostnames.map(normaliseHostname)
}

function setFirst(owners: Map<string, string>, key: string, owner: string): void {
  if (!owners.has(key)) owners.set(key, owner)
}

/** `.b.c` and `.c` of `a.b.c`; `.b.c` and `.c` of `*.b.c`. */
function suffixesOf(hostname: string): string[] {
  const found: string[] = []
  for (let dot = hostname.indexOf('.', 1); dot > 0; dot = hostname.indexOf('.', dot + 1)) {
    found.push(hostname.slice(dot))
  }
  return found
}
