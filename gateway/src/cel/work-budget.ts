import { CelEvaluationError } from './failure.ts'

/**
 * Bound on the work of one evaluation, so that an expression over a large body does not stop the event loop. A unit is about
 * 1 ns on an idle core: operations on texts count their characters, loops their rounds. Deterministic, unlike a time limit.
 */
const workLimit = 30_000_000

const exceededMessage = 'expression takes too many steps or too much work'

// Evaluation is synchronous, so one meter per thread is enough.
let left = workLimit
let shared = false

/** Starts the work of an evaluation, unless it shares that of a decision. */
export function resetWorkBudget(): void {
  if (!shared) left = workLimit
}

/** Counts work before it is done. Throws CelEvaluationError beyond the bound. */
export function spendWork(units: number): void {
  left -= units
  if (left < 0) throw new CelEvaluationError(exceededMessage)
}

/** Work of the latest evaluation or shared work. */
export function workSpent(): number {
  return workLimit - left
}

/** Whether the latest evaluation ended at the bound. */
export function isWorkBudgetExceeded(): boolean {
  return left < 0
}

/** Runs evaluations that together have the work of one. */
export function withSharedWorkBudget<T>(evaluate: () => T): T {
  left = workLimit
  shared = true
  try {
    return evaluate()
  } finally {
    shared = false
  }
}
