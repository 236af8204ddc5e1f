import { isIPv4, isIPv6 } from 'node:net'
import type { Endpoints } from './connection.ts'

/** Handling of PROXY protocol headers on a listener. */
export type ProxyProtocol = {
  readonly versions: 'v1' | 'v2' | 'all'
  /** Whether every connection must begin with a header. */
  readonly isRequired: boolean
  /** Whether headers of a peer are accepted. */
  isTrusted(address: string): boolean
}

/**
 * Start of a connection: a header of `length` bytes, with the addresses of the client unless the proxy speaks
 * for itself; no header; or an invalid one.
 */
export type ProxyHeader =
  | { readonly kind: 'header'; readonly length: number; readonly endpoints: Endpoints | undefined }
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid' }

const none = { kind: 'none' } as const
const invalid = { kind: 'invalid' } as const

const prefix1 = Buffer.from('PROXY ')
/** Longest header of version 1, with its line end. */
const maxLength1 = 107
const signature2 = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const fixedLength2 = 16
/** Addresses of IPv6 have 36 bytes; the rest is for extensions, which are ignored. */
const maxVariableLength2 = 512

/**
 * Parses the first bytes of a connection (PROXY protocol, sections 2.1 and 2.2). Undefined needs more bytes.
 */
export function parseProxyHeader(
  bytes: Buffer,
  { versions }: Pick<ProxyProtocol, 'versions'>,
): ProxyHeader | undefined {
  if (startsWith(bytes, prefix1)) {
    if (bytes.length < prefix1.length) return undefined
    return versions === 'v2' ? invalid : parseVersion1(bytes)
  }
  if (!startsWith(bytes, signature2)) return none
  if (bytes.length < fixedLength2) return undefined
  return versions === 'v1' ? invalid : parseVersion2(bytes)
}

/** Whether the common length of both is equal. */
function startsWith(bytes: Buffer, expected: Buffer): boolean {
  const length = Math.min(bytes.length, expected.length)
  return bytes.compare(expected, 0, length, 0, length) === 0
}

const line1 = /^PROXY (?:(TCP4|TCP6) (\S+) (\S+) (\d{1,5}) (\d{1,5})|UNKNOWN(?: [\x20-\x7e]*)?)$/

function parseVersion1(bytes: Buffer): ProxyHeader | undefined {
  const end = bytes.subarray(0, maxLength1).indexOf('\r\n')
  if (end < 0) return bytes.length < maxLength1 ? undefined : invalid
  const match = line1.exec(bytes.toString('latin1', 0, end))
  if (match === null) return invalid
  const [, family, from = '', to = '', fromPort = '', toPort = ''] = match
  const length = end + 2
  if (family === undefined) return { kind: 'header', length, endpoints: undefined }
  const isAddress = family === 'TCP4' ? isIPv4 : isIPv6
  const ports = [fromPort, toPort].map(readPort)
  const [remotePort, localPort] = ports
  if (!isAddress(from) || !isAddress(to) || from.includes('%') || to.includes('%')) return invalid
  if (remotePort === undefined || localPort === undefined) return invalid
  const endpoints = { remoteAddress: from, localAddress: to, remotePort, localPort }
  return { kind: 'header', length, endpoints }
}

/** Decimal without leading zeros. */
function readPort(text: string): number | undefined {
  const port = Number(text)
  return port > 65_535 || String(port) !== text ? undefined : port
}

const local = 0x20
const proxied = 0x21
const addressLengths: ReadonlyMap<number, number> = new Map([
  // TCP over IPv4, and over IPv6.
  [0x11, 4],
  [0x21, 16],
])

function parseVersion2(bytes: Buffer): ProxyHeader | undefined {
  const command = bytes.readUInt8(12)
  const family = bytes.readUInt8(13)
  const variable = bytes.readUInt16BE(14)
  if ((command !== local && command !== proxied) || variable > maxVariableLength2) return invalid
  const length = fixedLength2 + variable
  if (bytes.length < length) return undefined
  // Checks of the proxy itself, and unspecified families: the addresses of the connection apply.
  if (command === local || family === 0) return { kind: 'header', length, endpoints: undefined }
  const size = addressLengths.get(family)
  if (size === undefined || variable < 2 * size + 4) return invalid
  const at = (offset: number) => textOf(bytes.subarray(fixedLength2 + offset, fixedLength2 + offset + size))
  const endpoints = {
    remoteAddress: at(0),
    localAddress: at(size),
    remotePort: bytes.readUInt16BE(fixedLength2 + 2 * size),
    localPort: bytes.readUInt16BE(fixedLength2 + 2 * size + 2),
  }
  return { kind: 'header', length, endpoints }
}

function textOf(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16))
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1)
}
