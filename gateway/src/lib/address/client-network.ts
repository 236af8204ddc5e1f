import { isIPv6 } from 'node:net'

const groupsOfNetwork = 4

/**
 * The network assigned to one client: an IPv4 address itself, and the /64 of an IPv6 address (RFC 6177), of
 * which a client can use any address. Accepts addresses in plain form (`plainAddress`); other texts are
 * returned unchanged.
 */
export function clientNetwork(address: string): string {
  if (!address.includes(':') || !isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const before = groupsOf(head)
  const after = groupsOf(tail ?? '')
  const omitted = tail === undefined ? 0 : 8 - before.length - after.length
  const groups = [...before, ...Array<string>(omitted).fill('0'), ...after].slice(0, groupsOfNetwork)
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}

/** The groups of a part of an address; an IPv4 address at its end counts as two. */
function groupsOf(text: string): string[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => (group.includes('.') ? ['0', '0'] : [group]))
}
