import { shareStructure } from '../../../config/live/structural-share.ts'
import type { Config } from '../../../config/schema.ts'
import type { Head, ReceivedLine } from '../parts/messages.ts'
import { decodeOrder } from '../parts/order.ts'
import {
  type ConfigParts,
  hashLine,
  isPartKey,
  joinParts,
  type PartKey,
  replaceParts,
  versionOf,
} from '../parts/parts.ts'

/** A configuration as received, not validated. Unchanged nodes are those of the previous one. */
export type ReceivedConfig = ConfigParts & { readonly config: Config }

export type Assembly =
  /** More lines are needed. */
  | { readonly kind: 'partial' }
  | { readonly kind: 'received'; readonly received: ReceivedConfig }
  /** The lines do not fit together; the stream must start again with a whole configuration. */
  | { readonly kind: 'broken'; readonly reason: string }

/** Bound on parts of a configuration. */
const maxParts = 500_000

type Pending = { readonly head: Head; readonly parts: Map<PartKey, Entry> }
type Entry = { readonly value: unknown; readonly hash: string }

/**
 * Creates a function that assembles lines to configurations. Each is verified by its version, which is a hash
 * over its content, so that an error of encoding never reaches the gateway.
 */
export function createAssembly(
  start: ReceivedConfig | undefined,
): (line: ReceivedLine, text: string) => Assembly {
  let current = start
  let pending: Pending | undefined

  function begin(head: Head): Assembly {
    if (pending !== undefined) return broken('a configuration is incomplete')
    if (head.parts > maxParts) return broken(`the configuration has more than ${maxParts} parts`)
    if (head.kind === 'delta' && head.from !== current?.version) return broken('the changes do not fit')
    pending = { head, parts: new Map() }
    return complete(pending)
  }

  function add(key: PartKey, value: unknown, text: string): Assembly {
    if (pending === undefined || pending.parts.has(key)) return broken('a part is not expected')
    if (!isPartKey(key)) return broken('a part is of no section')
    pending.parts.set(key, { value, hash: hashLine(text) })
    return complete(pending)
  }

  function complete({ head, parts }: Pending): Assembly {
    if (parts.size < head.parts) return { kind: 'partial' }
    pending = undefined
    const keys = head.kind === 'full' ? [...parts.keys()] : decodeOrder(current?.keys ?? [], head.order)
    if (keys === undefined) return broken('the order of the parts does not fit')
    const next = assemble(keys, parts, current)
    if (next?.version !== head.version) return broken('the version does not match the content')
    current = next
    return { kind: 'received', received: next }
  }

  return (line, text) => {
    switch (line.kind) {
      case 'full':
      case 'delta':
        return begin(line)
      case 'part':
        return add(line.key, line.value, text)
      case 'heartbeat':
      case 'closing':
        return pending === undefined ? { kind: 'partial' } : broken('a configuration is incomplete')
      case 'invalid':
        return broken('a line is not valid')
    }
  }
}

function assemble(
  keys: readonly PartKey[],
  parts: ReadonlyMap<PartKey, Entry>,
  previous: ReceivedConfig | undefined,
): ReceivedConfig | undefined {
  if (previous !== undefined && keys === previous.keys) return replaceIn(previous, parts)
  const before = new Map<PartKey, Entry>()
  for (const [index, key] of (previous?.keys ?? []).entries()) {
    before.set(key, { value: previous?.values[index], hash: previous?.hashes[index] ?? '' })
  }
  const entries = keys.map((key): Entry => {
    const known = before.get(key)
    const changed = parts.get(key)
    if (changed === undefined) return known ?? { value: undefined, hash: '' }
    // Compile results are cached by node: a part shares what it has in common with its predecessor.
    return known === undefined ? changed : { ...changed, value: shareStructure(known.value, changed.value) }
  })
  const values = entries.map(({ value }) => value)
  const hashes = entries.map(({ hash }) => hash)
  const joined = joinParts(keys, values, previous?.config)
  const isSame = previous !== undefined && isSameConfig(previous.config, joined)
  const config = isSame ? previous.config : joined
  return { version: versionOf(hashes), keys, values, hashes, config }
}

/** Changes in place, such as of endpoints: 20,000 other parts cost little. Undefined for an unknown part. */
function replaceIn(previous: ReceivedConfig, parts: ReadonlyMap<PartKey, Entry>): ReceivedConfig | undefined {
  if (parts.size === 0) return previous
  const { keys, config } = previous
  const values = [...previous.values]
  const hashes = [...previous.hashes]
  const replaced = new Map<number, unknown>()
  for (const [key, { value, hash }] of parts) {
    const place = keys.indexOf(key)
    if (place < 0) return undefined
    values[place] = shareStructure(values[place], value)
    hashes[place] = hash
    replaced.set(place, values[place])
  }
  return { version: versionOf(hashes), keys, values, hashes, config: replaceParts(config, keys, replaced) }
}

function isSameConfig(one: Config, other: Config): boolean {
  const before = new Map<string, unknown>(Object.entries(one))
  const entries = Object.entries(other)
  return entries.length === before.size && entries.every(([key, value]) => before.get(key) === value)
}

function broken(reason: string): Assembly {
  return { kind: 'broken', reason }
}
