import { CelEvaluationError } from './failure.ts'

/**
 * Work limit of one evaluation, so that an expression over a large body does not block the event loop. A unit
 * is about 1 ns on an idle core: operations on texts count characters, loops count iterations. Deterministic,
 * unlike a time limit.
 */
const workLimit = 30_000_000

const exceededMessage = 'expression takes too many steps or too much work'

// Evaluation is synchronous, so one counter per thread suffices.
let left = workLimit
let shared = false

/** Resets the budget for an evaluation, unless evaluations share one. */
export function resetWorkBudget(): void {
  if (!shared) left = workLimit
}

/** Subtracts work from the budget before it is done. Throws CelEvaluationError if the limit is exceeded. */
export function spendWork(units: number): void {
  left -= units
  if (left < 0) throw new CelEvaluationError(exceededMessage)
}

/** Work of the latest evaluation, or of the evaluations that share a budget. */
export function workSpent(): number {
  return workLimit - left
}

/** Whether the latest evaluation exceeded the limit. */
export function isWorkBudgetExceeded(): boolean {
  return left < 0
}

/**
 * Runs evaluations under the budget of one, or a smaller one of `units`. A call within another one has what
 * is left of the outer budget, at most `units`.
 */
export function withSharedWorkBudget<T>(evaluate: () => T, units: number = workLimit): T {
  if (shared) return withPartOfBudget(evaluate, units)
  left = units
  shared = true
  try {
    return evaluate()
  } finally {
    shared = false
  }
}

function withPartOfBudget<T>(evaluate: () => T, units: number): T {
  const reserved = Math.max(0, left - units)
  left -= reserved
  try {
    return evaluate()
  } finally {
    if (reserved > 0) left = Math.max(0, left) + reserved
  }
}
