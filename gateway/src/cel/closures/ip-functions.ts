import {
  addressBytes,
  type Cidr,
  contains,
  parseCidr,
  plainAddress,
  textOfAddress,
} from '../../lib/address/cidr.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import { type StringMethod, stringMethod } from './string-methods.ts'
import { noOverload } from './values.ts'

/*
 * IP address and CIDR functions of the Kubernetes CEL libraries, as in the reference product. Addresses and
 * ranges are texts in canonical form: `ip("::FFFF:10.0.0.1")` is "10.0.0.1", `cidr("10.0.0.1/8")` is
 * "10.0.0.1/8".
 */

/** Functions of one text. */
export const ipFunctions: ReadonlyMap<string, (value: unknown) => unknown> = new Map([
  ['ip', ofText('ip', readIp)],
  ['cidr', ofText('cidr', (text) => withRange(text, textOfRange))],
  ['isIP', ofText('isIP', (text) => bytesOf(text) !== undefined)],
  ['isCIDR', ofText('isCIDR', (text) => rangeOf(text) !== undefined)],
])

/** Methods of texts that are addresses or ranges. */
export const ipMethods: readonly StringMethod[] = [
  stringMethod('containsIP', ['string'], (text, [address = '']) =>
    withRange(text, (range) => withBytes(address, (bytes) => contains(range, bytes))),
  ),
  stringMethod('containsCIDR', ['string'], (text, [other = '']) =>
    withRange(text, (outer) =>
      withRange(other, (inner) => inner.bits >= outer.bits && contains(outer, inner.bytes)),
    ),
  ),
  stringMethod('ip', [], (text) => withRange(text, ({ bytes }) => textOfAddress(bytes))),
  stringMethod('masked', [], (text) => withRange(text, (range) => textOfRange(masked(range)))),
  stringMethod('prefixLength', [], (text) => withRange(text, ({ bits }) => bits)),
  stringMethod('family', [], (text) => withBytes(text, (bytes) => (bytes.length === 4 ? 4 : 6))),
  ...Object.entries({
    isUnspecified: ['0.0.0.0/32', '::/128'],
    isLoopback: ['127.0.0.0/8', '::1/128'],
    isLinkLocalUnicast: ['169.254.0.0/16', 'fe80::/10'],
    isLinkLocalMulticast: ['224.0.0.0/24', 'ff02::/16'],
    isPrivate: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
  }).map(([name, ranges]) => inRanges(name, ranges)),
  outsideRanges('isGlobalUnicast', [
    ...['0.0.0.0/32', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '255.255.255.255/32'],
    ...['::/128', '::1/128', 'fe80::/10', 'ff00::/8'],
  ]),
]

function ofText(name: string, read: (text: string) => unknown): (value: unknown) => unknown {
  return (value) => (typeof value === 'string' ? read(value) : noOverload(name, value))
}

function readIp(text: string): unknown {
  return withBytes(text, textOfAddress)
}

function outsideRanges(name: string, ranges: readonly string[]): StringMethod {
  const parsed = ranges.flatMap((range) => parseCidr(range) ?? [])
  return stringMethod(name, [], (text) =>
    withBytes(text, (bytes) => !parsed.some((range) => contains(range, bytes))),
  )
}

function inRanges(name: string, ranges: readonly string[]): StringMethod {
  const parsed = ranges.flatMap((range) => parseCidr(range) ?? [])
  return stringMethod(name, [], (text) =>
    withBytes(text, (bytes) => parsed.some((range) => contains(range, bytes))),
  )
}

function withBytes(text: string, read: (bytes: readonly number[]) => unknown): unknown {
  const bytes = bytesOf(text)
  return bytes === undefined ? new Failure('text is not an IP address') : read(bytes)
}

function withRange(text: string, read: (range: Cidr) => unknown): unknown {
  const range = rangeOf(text)
  return range === undefined ? new Failure('text is not a CIDR range') : read(range)
}

function bytesOf(text: string): readonly number[] | undefined {
  spendWork(text.length * 20)
  return text.includes('%') ? undefined : addressBytes(plainAddress(text))
}

/** Parses a range. The prefix length is required, unlike in the configuration. */
function rangeOf(text: string): Cidr | undefined {
  spendWork(text.length * 20)
  return text.includes('/') ? parseCidr(text) : undefined
}

function textOfRange({ bytes, bits }: Cidr): string {
  return `${textOfAddress(bytes)}/${bits}`
}

function masked({ bytes, bits }: Cidr): Cidr {
  const kept = (index: number) => Math.min(8, Math.max(0, bits - index * 8))
  return { bits, bytes: bytes.map((byte, index) => byte & (0xff << (8 - kept(index)))) }
}
