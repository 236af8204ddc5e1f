import { executionAsyncResource } from 'node:async_hooks'
import { nextTick } from 'node:process'

/**
 * Prevents a permanent slowdown of `process.nextTick`. Node creates an object per call from a literal with
 * feedback for one hidden class. If a garbage collection finds no such object, V8 (14.x) drops the class, and
 * adds the properties of later objects in its runtime. One retained object preserves the class.
 *
 * 0.1 us per tick instead of 1.0-1.2 us after a collection, bench/functions/tick.bench.ts; remove when
 * Node > 26 passes it: the same figure with and without.
 */
export function keepTickShape(): void {
  nextTick(() => retained.add(executionAsyncResource()))
}

const retained = new Set<object>()
