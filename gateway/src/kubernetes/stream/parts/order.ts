import type { PartKey } from './parts.ts'

/**
 * Order of parts after a change: keys of new parts, and runs `[start, length]` of parts of the previous
 * order. Parts in no run are removed. One new route among 10,000 is two runs and a key.
 */
export type Order = readonly (PartKey | Run)[]
export type Run = readonly [start: number, length: number]

/** Encodes the order `next` relative to `previous`; keys are unique in each. */
export function encodeOrder(previous: readonly PartKey[], next: readonly PartKey[]): Order {
  const indexes = new Map(previous.map((key, index) => [key, index]))
  const order: (PartKey | [number, number])[] = []
  for (const key of next) {
    const index = indexes.get(key)
    const last = order.at(-1)
    if (index === undefined) order.push(key)
    else if (Array.isArray(last) && last[0] + last[1] === index) last[1] += 1
    else order.push([index, 1])
  }
  return order
}

/** The keys of an encoded order; undefined if it does not fit the previous order or has a key twice. */
export function decodeOrder(previous: readonly PartKey[], order: Order): PartKey[] | undefined {
  const next: PartKey[] = []
  for (const step of order) {
    if (typeof step === 'string') {
      next.push(step)
      continue
    }
    const [start, length] = step
    if (start + length > previous.length) return undefined
    // A run is never longer than the previous order, and runs with repeated keys are refused below.
    if (next.length + length > previous.length + order.length) return undefined
    for (let index = start; index < start + length; index++) next.push(previous[index] ?? '')
  }
  return new Set(next).size === next.length ? next : undefined
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
