import { CelEvaluationError } from './failure.ts'

/**
 * Bound on the work of one evaluation, so that an expression over a large body does not stop the event loop. A unit is about
 * 1 ns on an idle core: operations on texts count their characters, loops their rounds. Deterministic, unlike a time limit.
 */
const maxWork = 30_000_000

const beyondWork = 'expression takes too many steps or too much work'

// Evaluation is synchronous, so one meter per thread is enough.
let left = maxWork
let shared = false

/** Starts the work of an evaluation, unless it shares that of a decision. */
export function startWork(): void {
  if (!shared) left = maxWork
}

/** Counts work before it is done. Throws CelEvaluationError beyond the bound. */
export function spend(units: number): void {
  left -= units
  if (left < 0) throw new CelEvaluationError(beyondWork)
}

/** Work of the latest evaluation or shared work. */
export function workDone(): number {
  return maxWork - left
}

/** Whether the latest evaluation ended at the bound. */
export function isBeyondWork(): boolean {
  return left < 0
}

/** Runs evaluations that together have the work of one. */
export function shareWork<T>(evaluate: () => T): T {
  left = maxWork
  shared = true
  try {
    return evaluate()
  } finally {
    shared = false
  }
}
