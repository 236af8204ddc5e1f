import { plainAddress } from '../lib/address/cidr.ts'
import type { Headers } from '../net/http/headers.ts'
import { type Client, isHost } from '../pipeline/client-address.ts'
import type { Exchange } from '../pipeline/exchange.ts'

/**
 * Whether a header identifies the origin of a request (including `x-forwarded-user` and
 * `x-forwarded-client-cert`). Servers behind the gateway trust these headers, so only a trusted proxy may
 * send them; for servers with CGI header names (RFC 3875 section 4.1.18), `x_forwarded_for` equals
 * `x-forwarded-for`. Only `writeForwarded` sets them: filters of forwarded headers drop them, because
 * deleting from a copy is slower.
 */
export function isForwardingHeader(name: string): boolean {
  const plain = name.includes('_') ? name.replaceAll('_', '-') : name
  return plain.startsWith('x-forwarded-') || plain === 'forwarded' || plain === 'x-real-ip'
}

/**
 * Writes the origin of a request to headers for an upstream: the peer address is appended to
 * `x-forwarded-for` and `forwarded` of a trusted proxy, and is the only value otherwise; `x-forwarded-proto`
 * and `x-forwarded-host` are the client's. Other forwarding headers are passed through from trusted proxies
 * only. `headers` must be a copy without the headers of `isForwardingHeader`.
 */
export function writeForwarded(headers: Headers, exchange: Exchange): void {
  const { peer, facts } = exchange
  const { scheme, host } = facts.request
  const address = peer ? peer.address : plainAddress(facts.source.address)
  headers['x-forwarded-for'] = address === '' ? 'unknown' : address
  headers['x-forwarded-proto'] = scheme
  if (isHost(host)) headers['x-forwarded-host'] = host
  if (peer) passThrough(headers, exchange, peer)
}

/** Adds the forwarding headers of the trusted proxy. */
function passThrough(headers: Headers, { facts }: Exchange, peer: Client): void {
  const received = facts.request.headers
  const client = facts.source.address
  const chain = received['x-forwarded-for'] ?? (client === peer.address ? undefined : client)
  if (chain !== undefined) headers['x-forwarded-for'] = `${chain}, ${headers['x-forwarded-for']}`
  const forwarded = received['forwarded']
  if (forwarded !== undefined) headers['forwarded'] = appended(String(forwarded), forwardedElement(peer))
  for (const name in received) {
    const value = received[name]
    // An invalid host was not written above, and is not passed through either.
    if (name === 'x-forwarded-host' || value === undefined || headers[name] !== undefined) continue
    // Proxies may pass through names with underscores unchecked from their clients.
    if (isForwardingHeader(name) && !name.includes('_')) headers[name] = value
  }
}

const balancedQuotes = /^(?:[^"\\]|"(?:[^"\\]|\\.)*")*$/

/** Appends an element unless the list has an unclosed quote of a client, which would hide the element. */
function appended(list: string, element: string): string {
  return balancedQuotes.test(list) ? `${list}, ${element}` : element
}

/**
 * RFC 7239 section 4: values with colon or brackets are quoted; addresses and hosts contain no quotes or
 * backslashes.
 */
function forwardedElement({ address, scheme, host }: Client): string {
  const node = address === '' ? 'unknown' : address.includes(':') ? `"[${address}]"` : address
  return isHost(host) ? `for=${node};host="${host}";proto=${scheme}` : `for=${node};proto=${scheme}`
}
