/**
 * Result of parsing the first bytes of a connection. `incomplete` requests more bytes; the other results are
 * final.
 */
export type ClientHello =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'invalid' }
  | {
      readonly kind: 'hello'
      /** A DNS name in lower case; undefined without the extension. */
      readonly serverName: string | undefined
      /** Offered protocols, the preferred first; one character per byte. */
      readonly alpn: string[]
    }

/**
 * Maximum size of a hello with its record headers. Those with post-quantum keys have about two thousand
 * bytes.
 */
export const maxClientHelloBytes = 16 * 1024

const incomplete: ClientHello = { kind: 'incomplete' }
const invalid: ClientHello = { kind: 'invalid' }

const recordHeaderBytes = 5
const messageHeaderBytes = 4
const maxRecordBytes = 16 * 1024
const handshakeRecord = 22
const sslMajorVersion = 3
const clientHelloMessage = 1
const versionAndRandomBytes = 34
const maxSessionIdBytes = 32
const serverNameExtension = 0
const alpnExtension = 16
const hostNameType = 0

/**
 * Parses the ClientHello of a TLS connection (RFC 8446 4.1.2), also split over records (5.1), with its server
 * name (RFC 6066 3) and ALPN (RFC 7301 3.1). Never throws.
 */
export function parseClientHello(bytes: Uint8Array): ClientHello {
  const message = readMessage(bytes)
  return message instanceof Uint8Array ? (readHello(message) ?? invalid) : message
}

/**
 * Returns the first handshake message without its header; it must be a ClientHello. Data behind it is
 * ignored.
 */
function readMessage(bytes: Uint8Array): Uint8Array | ClientHello {
  const limit = Math.min(bytes.length, maxClientHelloBytes)
  const message = new Uint8Array(limit)
  let collected = 0
  for (let at = 0; at < limit; ) {
    if (bytes[at] !== handshakeRecord) return invalid
    if (at + 1 < limit && bytes[at + 1] !== sslMajorVersion) return invalid
    const start = at + recordHeaderBytes
    if (start > limit) break
    const recordBytes = uint16(bytes, at + 3)
    if (recordBytes === 0 || recordBytes > maxRecordBytes) return invalid
    at = start + recordBytes
    const fragment = bytes.subarray(start, Math.min(at, limit))
    message.set(fragment, collected)
    collected += fragment.length
    if (collected > 0 && message[0] !== clientHelloMessage) return invalid
    if (collected < messageHeaderBytes) continue
    const end = messageHeaderBytes + uint24(message, 1)
    if (end > maxClientHelloBytes) return invalid
    if (collected >= end) return message.subarray(messageHeaderBytes, end)
  }
  return bytes.length < maxClientHelloBytes ? incomplete : invalid
}

function readHello(message: Uint8Array): ClientHello | undefined {
  const sessionId = readVector(message, versionAndRandomBytes, 1)
  if (!sessionId || sessionId.bytes.length > maxSessionIdBytes) return undefined
  const cipherSuites = readVector(message, sessionId.end, 2)
  if (!cipherSuites || cipherSuites.bytes.length === 0 || cipherSuites.bytes.length % 2 !== 0)
    return undefined
  const compressionMethods = readVector(message, cipherSuites.end, 1)
  if (!compressionMethods || compressionMethods.bytes.length === 0) return undefined
  // TLS 1.2 and older may omit the extensions.
  if (compressionMethods.end === message.length) return { kind: 'hello', serverName: undefined, alpn: [] }
  const extensions = readVector(message, compressionMethods.end, 2)
  return extensions?.end === message.length ? readExtensions(extensions.bytes) : undefined
}

/** Duplicate extensions are invalid (RFC 8446 4.2): another implementation might use the other one. */
function readExtensions(bytes: Uint8Array): ClientHello | undefined {
  const seen = new Set<number>()
  let serverName: string | undefined
  let alpn: string[] | undefined
  for (let at = 0; at < bytes.length; ) {
    const type = uint16(bytes, at)
    const extension = readVector(bytes, at + 2, 2)
    if (!extension || seen.has(type)) return undefined
    seen.add(type)
    at = extension.end
    if (type === serverNameExtension) {
      serverName = readServerName(extension.bytes)
      if (serverName === undefined) return undefined
    }
    if (type === alpnExtension) {
      alpn = readProtocols(extension.bytes)
      if (!alpn) return undefined
    }
  }
  return { kind: 'hello', serverName, alpn: alpn ?? [] }
}

/**
 * The list must contain exactly one name: `host_name` is the only defined kind, and no kind may occur twice.
 */
function readServerName(bytes: Uint8Array): string | undefined {
  const list = readVector(bytes, 0, 2)
  if (list?.end !== bytes.length || list.bytes[0] !== hostNameType) return undefined
  const name = readVector(list.bytes, 1, 2)
  if (name?.end !== list.bytes.length) return undefined
  const text = characters(name.bytes).toLowerCase()
  return text.length <= maxNameCharacters && dnsName.test(text) && !ipv4Address.test(text) ? text : undefined
}

function readProtocols(bytes: Uint8Array): string[] | undefined {
  const list = readVector(bytes, 0, 2)
  if (list?.end !== bytes.length || list.bytes.length === 0) return undefined
  const protocols: string[] = []
  for (let at = 0; at < list.bytes.length; ) {
    const protocol = readVector(list.bytes, at, 1)
    if (!protocol || protocol.bytes.length === 0) return undefined
    protocols.push(characters(protocol.bytes))
    at = protocol.end
  }
  return protocols
}

const maxNameCharacters = 253
/** Labels of letters, digits, hyphens and, as in practice, underscores. */
const dnsName = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/
const ipv4Address = /^\d+(?:\.\d+){3}$/

/**
 * Reads a vector with a length prefix of `lengthBytes` bytes, with its end; undefined if it ends behind
 * `bytes`.
 */
function readVector(
  bytes: Uint8Array,
  at: number,
  lengthBytes: 1 | 2,
): { bytes: Uint8Array; end: number } | undefined {
  const start = at + lengthBytes
  if (start > bytes.length) return undefined
  const end = start + (lengthBytes === 1 ? (bytes[at] ?? 0) : uint16(bytes, at))
  return end > bytes.length ? undefined : { bytes: bytes.subarray(start, end), end }
}

function uint16(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) * 0x1_00 + (bytes[at + 1] ?? 0)
}

function uint24(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) * 0x1_00_00 + uint16(bytes, at + 1)
}

function characters(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}
