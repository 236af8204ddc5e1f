import { isIP, isIPv4, isIPv6, SocketAddress } from 'node:net'

/** The longest IPv6 form ends in an IPv4 address, with brackets and port. */
const maxAddressLength = 64

/** A range of addresses. IPv4-mapped IPv6 ranges are IPv4 ranges. */
export type Cidr = {
  /** Four bytes or sixteen. */
  readonly bytes: readonly number[]
  /** Prefix length. */
  readonly bits: number
}

/** Reads `10.0.0.0/8`, `fd00::/8`, or one address. Undefined for anything else. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  if (address.includes('%')) return undefined
  const bytes = addressBytes(address)
  if (bytes === undefined) return undefined
  // A mapped address may represent a range larger than IPv4: `::ffff:0:0/90`.
  const full = isIPv4(address) ? 32 : 128
  const bits = slash < 0 ? full : readBits(text.slice(slash + 1), full)
  if (bits === undefined) return undefined
  if (full === 32 || !isMapped(bytes)) return { bytes, bits }
  return bits < 96 ? { bytes, bits } : { bytes: bytes.slice(12), bits: bits - 96 }
}

function readBits(text: string, most: number): number | undefined {
  if (!/^\d{1,3}$/.test(text)) return undefined
  const bits = Number(text)
  return bits > most ? undefined : bits
}

/**
 * Compiles ranges to a membership test. Mapped addresses (`::ffff:10.0.0.1`) count as IPv4; other text is in
 * no range.
 */
export function compileCidrs(ranges: readonly Cidr[]): (address: string) => boolean {
  const four = ranges.filter(({ bytes }) => bytes.length === 4).map(compileFour)
  const sixteen = ranges.filter(({ bytes }) => bytes.length === 16)
  return (text) => {
    const address = plainAddress(text)
    if (!address.includes(':')) {
      if (four.length === 0) return false
      const number = fourAsNumber(address)
      if (number < 0) return false
      for (const { network, mask } of four) if ((number & mask) >>> 0 === network) return true
      return false
    }
    if (sixteen.length === 0) return false
    const bytes = addressBytes(address)
    return bytes !== undefined && sixteen.some((range) => contains(range, bytes))
  }
}

/**
 * The canonical form of an address for comparison and display: IPv4-mapped IPv6 addresses as IPv4, without a
 * zone.
 */
export function plainAddress(address: string): string {
  if (!address.includes(':')) return address
  const zone = address.indexOf('%')
  const text = zone < 0 ? address : address.slice(0, zone)
  // Form of IPv4 peers on dual-stack sockets.
  const mapped = text.startsWith('::ffff:') ? text.slice('::ffff:'.length) : ''
  if (mapped.includes('.') && !mapped.includes(':')) return mapped
  if (!/^[0:]*:ffff:[0-9a-f.:]+$/i.test(text)) return text
  // Other spellings: `0:0:0:0:0:ffff:a00:1`.
  const bytes = addressBytes(text)
  return bytes !== undefined && isMapped(bytes) ? bytes.slice(12).join('.') : text
}

/**
 * The plain form of an address with an optional port: `1.2.3.4:80`, `[::1]`, `[::1]:80`, `::1`. Undefined for
 * anything else.
 */
export function parseAddress(text: string): string | undefined {
  if (text.length > maxAddressLength) return undefined
  const host = withoutPort(text)
  return host === undefined || isIP(host) === 0 || host.includes('%') ? undefined : plainAddress(host)
}

function withoutPort(text: string): string | undefined {
  if (text.startsWith('[')) return /^\[([0-9a-f:.]+)\](?::\d{1,5})?$/i.exec(text)?.[1]
  const colon = text.indexOf(':')
  if (colon < 0 || text.indexOf(':', colon + 1) >= 0) return text
  return /^\d{1,5}$/.test(text.slice(colon + 1)) ? text.slice(0, colon) : undefined
}

type Four = { readonly network: number; readonly mask: number }

function compileFour({ bytes, bits }: Cidr): Four {
  // A shift by 32 has no effect.
  const mask = bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0
  return { network: (fourAsNumber(bytes.join('.')) & mask) >>> 0, mask }
}

/**
 * The number of an IPv4 address, -1 for other text. Without allocations, because it runs for every
 * connection.
 */
function fourAsNumber(text: string): number {
  let address = 0
  let part = -1
  let dots = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === 0x2e) {
      if (part < 0 || ++dots > 3) return -1
      address = address * 256 + part
      part = -1
      continue
    }
    if (code < 0x30 || code > 0x39 || part === 0) return -1
    part = (part < 0 ? 0 : part * 10) + code - 0x30
    if (part > 255) return -1
  }
  return dots === 3 && part >= 0 ? address * 256 + part : -1
}

/** Whether an address, as bytes, lies in a range. */
export function contains({ bytes, bits }: Cidr, address: readonly number[]): boolean {
  if (bytes.length !== address.length) return false
  const whole = bits >> 3
  for (let index = 0; index < whole; index++) if (bytes[index] !== address[index]) return false
  const rest = bits & 7
  if (rest === 0) return true
  const mask = (0xff << (8 - rest)) & 0xff
  return ((bytes[whole] ?? 0) & mask) === ((address[whole] ?? 0) & mask)
}

function isMapped(bytes: readonly number[]): boolean {
  return (
    bytes.length === 16 &&
    bytes[10] === 255 &&
    bytes[11] === 255 &&
    bytes.slice(0, 10).every((byte) => byte === 0)
  )
}

/** Bytes of an IP address, four or sixteen. Undefined for anything else. */
export function addressBytes(text: string): number[] | undefined {
  if (isIPv4(text)) return text.split('.').map(Number)
  if (!isIPv6(text)) return undefined
  const [head = '', tail] = text.split('::')
  const before = groupBytes(head)
  if (tail === undefined) return before
  const after = groupBytes(tail)
  return [...before, ...Array<number>(16 - before.length - after.length).fill(0), ...after]
}

/** Bytes of the groups of an IPv6 address; the last group may be an IPv4 address. */
function groupBytes(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}

/** The canonical text of four or sixteen bytes (RFC 5952). */
export function textOfAddress(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, index) =>
    (((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0)).toString(16),
  )
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address
}
