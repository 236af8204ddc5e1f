import { type Cidr, compileCidrs, parseAddress } from '../lib/address/cidr.ts'
import { tokenSource } from '../lib/http-token.ts'
import type { Headers } from '../net/http/headers.ts'

/** The client of a request, from the connection or from headers of trusted proxies. */
export type Client = {
  /** Empty if the connection has none. */
  readonly address: string
  readonly scheme: 'http' | 'https'
  /** Includes the port if one was sent. */
  readonly host: string
}

/**
 * Resolves the client of a request; `peer` is the connection's own, with its address in plain form.
 * Returns `peer` itself if the peer is not trusted, and another object if it is.
 */
export type ClientReader = (headers: Headers, peer: Client) => Client

/** Longest chain of proxies that is resolved; further hops are ignored. */
const maxHops = 20
const maxElementLength = 512
const maxHostLength = 300

const host = /^(?:[A-Za-z0-9._~%-]+|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/
/** RFC 7239 section 4. */
const forwardedPair = new RegExp(`^(${tokenSource})=(?:"((?:[^"\\\\]|\\\\.)*)"|(${tokenSource}))$`)

/**
 * Whether a host, with or without port, is safe to compare, log and forward: no lists, quotes, spaces or user
 * names.
 */
export function isHost(text: string): boolean {
  return text.length <= maxHostLength && host.test(text)
}

/**
 * Creates a reader that trusts only proxies in the given ranges.
 *
 * Starting with the peer, each trusted hop is followed until a hop is untrusted or has no valid entry; that
 * hop is the client. `x-forwarded-for` precedes `forwarded` (RFC 7239), because proxies that write the one
 * often pass through the other. Scheme and host come from the last value of `x-forwarded-proto` and
 * `x-forwarded-host`, or from the same element of `forwarded` as the client address. A trusted proxy must
 * therefore set or remove these headers.
 */
export function createClientReader(options: { trusted: readonly Cidr[] }): ClientReader {
  const isTrusted = compileCidrs(options.trusted)
  return (headers, peer) => {
    if (!isTrusted(peer.address)) return peer
    const chain = joined(headers['x-forwarded-for'])
    const forwarded = chain === undefined ? joined(headers['forwarded']) : undefined
    if (forwarded !== undefined) return throughForwarded(forwarded, peer, isTrusted)
    const proto = lastElement(joined(headers['x-forwarded-proto']))
    const hostname = lastElement(joined(headers['x-forwarded-host']))
    return {
      address: chain === undefined ? peer.address : addressBehind(chain, peer.address, isTrusted),
      scheme: readScheme(proto) ?? peer.scheme,
      host: hostname !== undefined && isHost(hostname) ? hostname : peer.host,
    }
  }
}

function addressBehind(chain: string, peer: string, isTrusted: (address: string) => boolean): string {
  let address = peer
  let end = chain.length
  for (let hops = 0; hops < maxHops && end >= 0; hops++) {
    const comma = commaBefore(chain, end)
    const next = parseAddress(elementAt(chain, comma, end))
    if (next === undefined) return address
    address = next
    if (!isTrusted(address)) return address
    end = comma
  }
  return address
}

function throughForwarded(list: string, peer: Client, isTrusted: (address: string) => boolean): Client {
  let client: Client = { ...peer }
  let end = list.length
  for (let hops = 0; hops < maxHops && end >= 0; hops++) {
    const comma = commaBefore(list, end)
    // Splitting at every comma is safe from the right: elements with a comma inside are malformed. From the
    // left, an unclosed quote of a client would swallow the elements that proxies appended.
    const pairs = parseElement(elementAt(list, comma, end))
    const address = parseAddress(pairs?.get('for') ?? '')
    if (address === undefined) return client
    const named = pairs?.get('host')
    client = {
      address,
      scheme: readScheme(pairs?.get('proto')) ?? peer.scheme,
      host: named !== undefined && isHost(named) ? named : peer.host,
    }
    if (!isTrusted(address)) return client
    end = comma
  }
  return client
}

/** The pairs of one element of `forwarded`, names in lower case; undefined if malformed. */
function parseElement(element: string): ReadonlyMap<string, string> | undefined {
  const pairs = new Map<string, string>()
  for (const part of element.split(';')) {
    const [, name, quoted, token] = forwardedPair.exec(part.trim()) ?? []
    const value = token ?? quoted?.replace(/\\(.)/g, '$1')
    if (name === undefined || value === undefined || pairs.has(name.toLowerCase())) return undefined
    pairs.set(name.toLowerCase(), value)
  }
  return pairs
}

function readScheme(text: string | undefined): 'http' | 'https' | undefined {
  const scheme = text?.toLowerCase()
  return scheme === 'http' || scheme === 'https' ? scheme : undefined
}

function joined(value: string | string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value
}

function lastElement(list: string | undefined): string | undefined {
  return list === undefined ? undefined : elementAt(list, commaBefore(list, list.length), list.length)
}

/** The index of the comma before `end`; -1 for none. */
function commaBefore(list: string, end: number): number {
  return end === 0 ? -1 : list.lastIndexOf(',', end - 1)
}

/** The element between comma and end; empty if it is too long. */
function elementAt(list: string, comma: number, end: number): string {
  return end - comma > maxElementLength ? '' : list.slice(comma + 1, end).trim()
}
