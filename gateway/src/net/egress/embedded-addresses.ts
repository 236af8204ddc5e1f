import { addressBytes, plainAddress } from '../../lib/address/cidr.ts'

type FindEmbedded = (bytes: readonly number[]) => readonly number[] | undefined

/** IPv6 forms with an embedded IPv4 address, for routers, translators or tunnels. */
const forms: readonly FindEmbedded[] = [
  // NAT64 (RFC 6052) with the well-known prefix, and with a /96 below the local-use prefix (RFC 8215).
  (bytes) => (startsWith(bytes, [0x00, 0x64, 0xff, 0x9b]) ? bytes.slice(12) : undefined),
  // NAT64 with the local-use prefix as a /48 (RFC 6052 section 2.2).
  (bytes) =>
    startsWith(bytes, [0x00, 0x64, 0xff, 0x9b, 0x00, 0x01])
      ? [...bytes.slice(6, 8), ...bytes.slice(9, 11)]
      : undefined,
  // 6to4 (RFC 3056).
  (bytes) => (startsWith(bytes, [0x20, 0x02]) ? bytes.slice(2, 6) : undefined),
  // Teredo (RFC 4380): the bits of the client's address are inverted.
  (bytes) => (startsWith(bytes, [0x20, 0x01, 0, 0]) ? bytes.slice(12).map((byte) => byte ^ 0xff) : undefined),
  // IPv4-compatible (RFC 4291), IPv4-translated (RFC 7915) and IPv4-mapped addresses.
  (bytes) => (bytes.slice(0, 8).every((byte) => byte === 0) ? bytes.slice(12) : undefined),
  // ISATAP (RFC 5214).
  (bytes) =>
    startsWith(bytes.slice(8), [0, 0, 0x5e, 0xfe]) || startsWith(bytes.slice(8), [2, 0, 0x5e, 0xfe])
      ? bytes.slice(12)
      : undefined,
]

/** The address in plain form, and its embedded IPv4 addresses. */
export function addressesWithin(address: string): string[] {
  const plain = plainAddress(address)
  const bytes = plain.includes(':') ? addressBytes(plain) : undefined
  if (bytes === undefined) return [plain]
  return [plain, ...forms.flatMap((embedded) => embedded(bytes)?.join('.') ?? [])]
}

function startsWith(bytes: readonly number[], start: readonly number[]): boolean {
  return start.every((byte, index) => bytes[index] === byte)
}
