import { plainAddress } from '../lib/address/cidr.ts'
import type { Headers } from '../net/http/headers.ts'
import { type Client, isHost } from '../pipeline/client-address.ts'
import type { Exchange } from '../pipeline/exchange.ts'

/**
 * Whether a header says on whose behalf a request is made (`x-forwarded-user` and `x-forwarded-client-cert` too). Servers
 * behind the gateway believe these, so only a trusted proxy may send them; to those with CGI's names of headers (RFC 3875
 * section 4.1.18), `x_forwarded_for` is the same as `x-forwarded-for`. They are for `writeForwarded` alone: filters of
 * forwarded headers drop them, because taking them out of a copy is slower.
 */
export function isForwardingHeader(name: string): boolean {
  const plain = name.includes('_') ? name.replaceAll('_', '-') : name
  return plain.startsWith('x-forwarded-') || plain === 'forwarded' || plain === 'x-real-ip'
}

/**
 * Says in headers for an upstream whom the request is from: the peer's address is appended to `x-forwarded-for` and to
 * `forwarded` where a trusted proxy sent them, and stands alone otherwise; `x-forwarded-proto` and `x-forwarded-host` are
 * the client's. What else a trusted proxy says is passed on; what other clients say is left out.
 * `headers` must be a copy without the headers of `isForwardingHeader`.
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

/** Adds what the trusted proxy said to what is said about itself. */
function passThrough(headers: Headers, { facts }: Exchange, peer: Client): void {
  const received = facts.request.headers
  const client = facts.source.address
  const chain = received['x-forwarded-for'] ?? (client === peer.address ? undefined : client)
  if (chain !== undefined) headers['x-forwarded-for'] = `${chain}, ${headers['x-forwarded-for']}`
  const forwarded = received['forwarded']
  if (forwarded !== undefined) headers['forwarded'] = appended(String(forwarded), forwardedElement(peer))
  for (const name in received) {
    const value = received[name]
    // A host that is none was not written above, and is not passed on either.
    if (name === 'x-forwarded-host' || value === undefined || headers[name] !== undefined) continue
    // A proxy that does not know of names with underscores leaves them as its clients wrote them.
    if (isForwardingHeader(name) && !name.includes('_')) headers[name] = value
  }
}

const balancedQuotes = /^(?:[^"\\]|"(?:[^"\\]|\\.)*")*$/

/** A proxy may have appended to what its client sent: behind a quote left open, nobody would read on. */
function appended(list: string, element: string): string {
  return balancedQuotes.test(list) ? `${list}, ${element}` : element
}

/** RFC 7239 section 4: what has a colon or brackets is quoted; neither addresses nor hosts hold quotes or backslashes. */
function forwardedElement({ address, scheme, host }: Client): string {
  const node = address === '' ? 'unknown' : address.includes(':') ? `"[${address}]"` : address
  return isHost(host) ? `for=${node};host="${host}";proto=${scheme}` : `for=${node};proto=${scheme}`
}
