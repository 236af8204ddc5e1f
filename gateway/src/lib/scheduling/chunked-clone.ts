import { deserialize, serialize } from 'node:v8'
import { runYielding, type YieldPoint } from './yielding.ts'

/**
 * Serializes plain data to chunks that are short to read: a message between threads is read in one step,
 * during which traffic waits. Lists may be long; everything else is expected to be short.
 */
export function serializeChunks(value: unknown): Uint8Array<ArrayBuffer>[] {
  const lists: LongList[] = []
  const rest = withoutLongLists(value, [], lists)
  const pieces: (LongList | { rest: unknown })[] = [{ rest }]
  for (const { path, items } of lists) {
    for (let start = 0; start < items.length; start += itemsOfPiece) {
      pieces.push({ path, items: items.slice(start, start + itemsOfPiece) })
    }
  }
  // Separate buffers, which can be transferred to the other thread.
  return pieces.map((piece) => Uint8Array.from(serialize(piece)))
}

/** Reads the chunks of `serializeChunks`, with yield points. */
export function deserializeChunks(pieces: readonly Uint8Array[], yieldPoint: YieldPoint): Promise<unknown> {
  return runYielding(joining(pieces), yieldPoint)
}

type Path = readonly string[]
type LongList = { path: Path; items: unknown[] }

const itemsOfPiece = 100

/** Returns the value with an empty list in place of each long one, which is added to `lists`. */
function withoutLongLists(value: unknown, path: Path, lists: LongList[]): unknown {
  if (Array.isArray(value)) {
    if (value.length <= itemsOfPiece)
      return value.map((item, index) => withoutLongLists(item, [...path, String(index)], lists))
    lists.push({ path, items: value })
    return []
  }
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, withoutLongLists(part, [...path, key], lists)]),
  )
}

function* joining(pieces: readonly Uint8Array[]): Generator<void, unknown> {
  const [first, ...more] = pieces
  const whole: { rest: unknown } = first === undefined ? { rest: undefined } : deserialize(first)
  for (const piece of more) {
    yield
    const { path, items }: LongList = deserialize(piece)
    const list = path.reduce(partOf, whole.rest)
    if (Array.isArray(list)) for (const item of items) list.push(item)
  }
  return whole.rest
}

function partOf(value: unknown, key: string): unknown {
  return isObject(value) || Array.isArray(value) ? Reflect.get(value, key) : undefined
}

function isObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
