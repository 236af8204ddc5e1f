import { type CommonEnds, commonEnds, encodeOrder, isOrder, type Order } from './order.ts'
import { type ConfigParts, type PartHash, type PartKey, type PartList, partLine } from './parts.ts'

// A stream consists of lines of JSON. A configuration is a head, one line for each part, and an end. Each
// message is a compressed frame of its own, so that all connections share its bytes.

/** First line of a configuration: the whole, or the changes since `from`. */
export type Head =
  | { readonly kind: 'full'; readonly version: string; readonly parts: number }
  | {
      readonly kind: 'delta'
      readonly from: string
      readonly version: string
      readonly parts: number
      readonly order: Order
    }

/** A line without part. `heartbeat` is sent when nothing else is. */
type Line = Head | { readonly kind: 'heartbeat' } | { readonly kind: 'closing'; readonly reason: string }

export const heartbeatLine = '{"kind":"heartbeat"}\n'

/** Text of a whole configuration, in pieces. */
export function* fullMessage({ version, keys, values }: ConfigParts): Generator<string, void> {
  yield headLine({ kind: 'full', version, parts: keys.length })
  for (const [index, key] of keys.entries()) yield `${partLine(key, values[index])}\n`
}

/** Text of the changes since `from`, in pieces. */
export function* deltaMessage(from: PartList, to: ConfigParts): Generator<string, void> {
  const ends = commonEnds(from.keys, to.keys)
  const changed = changedParts(from, to, ends)
  const order = encodeOrder(from.keys, to.keys, ends)
  yield headLine({ kind: 'delta', from: from.version, version: to.version, parts: changed.length, order })
  for (const index of changed) yield `${partLine(to.keys[index] ?? '', to.values[index])}\n`
}

/** Indexes of parts with another content than before. */
function changedParts(from: PartList, to: ConfigParts, { prefix, suffix }: CommonEnds): number[] {
  const known = new Map<PartKey, PartHash>()
  for (let index = prefix; index < from.keys.length - suffix; index++) {
    known.set(from.keys[index] ?? '', from.hashes[index] ?? '')
  }
  const shift = from.keys.length - to.keys.length
  const changed: number[] = []
  for (const [index, hash] of to.hashes.entries()) {
    const isMoved = index >= prefix && index < to.keys.length - suffix
    const fromIndex = index < prefix ? index : index + shift
    const before = isMoved ? known.get(to.keys[index] ?? '') : from.hashes[fromIndex]
    if (before !== hash) changed.push(index)
  }
  return changed
}

export function closingLine(reason: string): string {
  return headLine({ kind: 'closing', reason })
}

function headLine(line: Line): string {
  return `${JSON.stringify(line)}\n`
}

/** A line as received. */
export type ReceivedLine =
  | Line
  | { readonly kind: 'part'; readonly key: PartKey; readonly value: unknown }
  | { readonly kind: 'invalid' }

/** Reads a line without its newline. Lines of unknown kinds are `heartbeat`: later versions may add some. */
export function readLine(text: string): ReceivedLine {
  const line = parse(text)
  if (Array.isArray(line)) {
    const [key, value]: unknown[] = line
    return typeof key === 'string' && line.length === 2 ? { kind: 'part', key, value } : { kind: 'invalid' }
  }
  if (typeof line !== 'object' || line === null || !('kind' in line)) return { kind: 'invalid' }
  switch (line.kind) {
    case 'full':
    case 'delta':
      return readHead(line)
    case 'closing':
      return { kind: 'closing', reason: 'reason' in line ? String(line.reason).slice(0, maxReason) : '' }
    default:
      return typeof line.kind === 'string' ? { kind: 'heartbeat' } : { kind: 'invalid' }
  }
}

const maxReason = 200

function readHead(line: object & Record<'kind', unknown>): ReceivedLine {
  const { kind, version, parts, from, order }: Record<string, unknown> = { ...line }
  if (!isText(version) || typeof parts !== 'number') return { kind: 'invalid' }
  if (kind === 'full') return { kind, version, parts }
  if (!isText(from) || !isOrder(order)) return { kind: 'invalid' }
  return { kind: 'delta', from, version, parts, order }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
