import type { PartKey } from './parts.ts'

/**
 * Order of parts after a change: keys of new parts, and runs `[start, length]` of parts of the previous
 * order. Parts in no run are removed. One new route among 10,000 is two runs and a key.
 */
export type Order = readonly (PartKey | Run)[]
export type Run = readonly [start: number, length: number]

/** Numbers of equal items at the start and at the end of two lists, without overlap. */
export type CommonEnds = { readonly prefix: number; readonly suffix: number }

export function commonEnds(one: readonly string[], other: readonly string[]): CommonEnds {
  const shorter = Math.min(one.length, other.length)
  let prefix = 0
  while (prefix < shorter && one[prefix] === other[prefix]) prefix++
  let suffix = 0
  while (suffix < shorter - prefix && one.at(-1 - suffix) === other.at(-1 - suffix)) suffix++
  return { prefix, suffix }
}

/** Encodes the order `next` relative to `previous`; keys are unique in each. */
export function encodeOrder(
  previous: readonly PartKey[],
  next: readonly PartKey[],
  { prefix, suffix } = commonEnds(previous, next),
): Order {
  const order: (PartKey | [number, number])[] = []
  const add = (index: number, length: number) => {
    const last = order.at(-1)
    if (length === 0) return
    if (Array.isArray(last) && last[0] + last[1] === index) last[1] += length
    else order.push([index, length])
  }
  const indexes = new Map<PartKey, number>()
  for (let index = prefix; index < previous.length - suffix; index++)
    indexes.set(previous[index] ?? '', index)
  add(0, prefix)
  for (const key of next.slice(prefix, next.length - suffix)) {
    const index = indexes.get(key)
    if (index === undefined) order.push(key)
    else add(index, 1)
  }
  add(previous.length - suffix, suffix)
  return order
}

/**
 * The keys of an encoded order, `previous` itself if nothing moves; undefined if it does not fit the previous
 * order or has a key twice.
 */
export function decodeOrder(previous: readonly PartKey[], order: Order): readonly PartKey[] | undefined {
  if (isUnchanged(previous, order)) return previous
  const next: PartKey[] = []
  for (const step of order) {
    if (typeof step === 'string') {
      next.push(step)
      continue
    }
    const [start, length] = step
    if (start + length > previous.length) return undefined
    // Without repeated keys, runs are not longer than the previous order together.
    if (next.length + length > previous.length + order.length) return undefined
    for (let index = start; index < start + length; index++) next.push(previous[index] ?? '')
  }
  return new Set(next).size === next.length ? next : undefined
}

function isUnchanged(previous: readonly PartKey[], order: Order): boolean {
  if (order.length === 0) return previous.length === 0
  const [run] = order
  return order.length === 1 && Array.isArray(run) && run[0] === 0 && run[1] === previous.length
}

/** Guard of an order from a message. */
export function isOrder(value: unknown): value is Order {
  return Array.isArray(value) && value.every((step) => typeof step === 'string' || isRun(step))
}

function isRun(value: unknown): value is Run {
  return Array.isArray(value) && value.length === 2 && isCount(value[0]) && isCount(value[1])
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
