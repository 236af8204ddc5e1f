import { plainAddress } from '../lib/cidr.ts'
import type { Headers } from '../net/headers.ts'
import { type Client, isHost } from './clients.ts'
import type { Exchange } from './exchange.ts'

/** Headers that say on whose behalf a request is made. Only a trusted proxy may say so; servers behind the gateway believe them. */
const forwardingHeaders: ReadonlySet<string> = new Set([
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'x-forwarded-scheme',
  'x-forwarded-server',
  'x-forwarded-ssl',
  'x-real-ip',
])

/** Those that are passed on as a trusted proxy sent them. */
const passedOn = [
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-scheme',
  'x-forwarded-server',
  'x-forwarded-ssl',
  'x-real-ip',
] as const

/**
 * Whether a header is for `writeForwarded` alone: filters of forwarded headers drop it, because taking it out of a
 * copy is slower.
 */
export function isForwardingHeader(name: string): boolean {
  return forwardingHeaders.has(name)
}

/**
 * Says in headers for an upstream whom the request is from: the peer's address is appended to `x-forwarded-for` and to
 * `forwarded` where a trusted proxy sent them, and stands alone otherwise; `x-forwarded-proto` and `x-forwarded-host` are
 * the client's. Whatever else a client that is no trusted proxy says of itself is left out.
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
  if (forwarded !== undefined) headers['forwarded'] = `${forwarded}, ${forwardedElement(peer)}`
  for (const name of passedOn) {
    const value = received[name]
    if (value !== undefined) headers[name] = value
  }
}

/** RFC 7239 section 4: what has a colon or brackets is quoted; neither addresses nor hosts hold quotes or backslashes. */
function forwardedElement({ address, scheme, host }: Client): string {
  const node = address === '' ? 'unknown' : address.includes(':') ? `"[${address}]"` : address
  return isHost(host) ? `for=${node};host="${host}";proto=${scheme}` : `for=${node};proto=${scheme}`
}
