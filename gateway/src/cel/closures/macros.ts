import type { Macro } from '../ast.ts'
import { CelEvaluationError, Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import type { Evaluate, Variables } from './representation.ts'
import { isMap, load, mapEntries, mapKeys, noOverload } from './values.ts'

/** Variable of a macro. Evaluation is synchronous, so one slot per macro of an expression suffices. */
export type Local = { readonly name: string; value: unknown }

/**
 * Remaining loop iterations of an evaluation: clients control the length of lists, and nested loops multiply.
 */
export type StepBudget = {
  left: number
  /** Work units per iteration in the library. */
  readonly libraryStepWork: number
}

type Loop = {
  readonly range: Evaluate
  readonly test: Evaluate | undefined
  readonly step: Evaluate | undefined
  readonly local: Local
  readonly budget: StepBudget
  /** Work units per iteration. */
  readonly cost: number
}

/** Compiles a macro: a loop, or `with`. */
export function compileLoop(macro: Macro, loop: Loop): Evaluate {
  const { range, local, budget, cost } = loop
  if (macro === 'with') return compileWith(loop)
  const run = macro === 'filterKeys' || macro === 'mapValues' ? undefined : compileRun(macro, loop)
  const enter = (item: unknown) => {
    budget.left -= 1
    if (budget.left < 0) throw new CelEvaluationError('expression takes too many steps')
    spendWork(cost)
    local.value = load(item)
  }
  return (variables) => {
    const value = range(variables)
    const items = itemsOf(value, macro)
    if (items instanceof Failure) return items
    try {
      return run === undefined ? mapOf(value, loop, { variables, enter }) : run(items, variables, enter)
    } finally {
      // The compiled expression outlives the request and must not retain its data.
      local.value = undefined
    }
  }
}

/** `value.with(name, result)`: the result with a name for a value. */
function compileWith({ range, step, local }: Loop): Evaluate {
  return (variables) => {
    const value = range(variables)
    if (value instanceof Failure) return value
    const outer = local.value
    local.value = value
    try {
      return step?.(variables)
    } finally {
      local.value = outer
    }
  }
}

type Turn = { variables: Variables; enter: (item: unknown) => void }

/** `filterKeys` and `mapValues`: a map of the entries that pass, or of new values. */
function mapOf(map: unknown, { test, step }: Loop, { variables, enter }: Turn): unknown {
  if (!isMap(map)) return noOverload(step === undefined ? 'filterKeys' : 'mapValues', map)
  const result = new Map<unknown, unknown>()
  for (const [key, member] of mapEntries(map)) {
    enter(step === undefined ? key : member)
    const accepted = test === undefined || test(variables)
    if (typeof accepted !== 'boolean') return noOverload('a test', accepted)
    if (!accepted) continue
    const value = step === undefined ? member : step(variables)
    if (value instanceof Failure) return value
    result.set(key, value)
  }
  return result
}

type Run = (items: readonly unknown[], variables: Variables, enter: (item: unknown) => void) => unknown

function compileRun(
  macro: Exclude<Macro, 'filterKeys' | 'mapValues' | 'with'>,
  { test = always, step, local }: Loop,
): Run {
  const collect = step ?? (() => local.value)
  switch (macro) {
    case 'all':
    case 'exists': {
      const decisive = macro === 'exists'
      return (items, variables, enter) =>
        decide(items, decisive, (item) => {
          enter(item)
          return test(variables)
        })
    }
    case 'exists_one':
      return (items, variables, enter) => {
        const found = collectItems(
          items,
          (item) => {
            enter(item)
            return test(variables)
          },
          always,
        )
        return Array.isArray(found) ? found.length === 1 : found
      }
    case 'filter':
    case 'map':
      return (items, variables, enter) =>
        collectItems(
          items,
          (item) => {
            enter(item)
            return test(variables)
          },
          () => collect(variables),
        )
  }
}

const always = () => true

/** Evaluates a quantifier: the first `decisive` result decides; otherwise the first failure is the result. */
function decide(items: readonly unknown[], decisive: boolean, test: (item: unknown) => unknown): unknown {
  let failure: Failure | undefined
  for (const item of items) {
    const answer = test(item)
    if (answer === decisive) return decisive
    if (typeof answer !== 'boolean') failure ??= noOverload(decisive ? 'exists' : 'all', answer)
  }
  return failure ?? !decisive
}

function collectItems(
  items: readonly unknown[],
  test: (item: unknown) => unknown,
  collect: () => unknown,
): unknown[] | Failure {
  const collected: unknown[] = []
  for (const item of items) {
    const accepted = test(item)
    if (typeof accepted !== 'boolean') return noOverload('a test', accepted)
    if (!accepted) continue
    const value = collect()
    if (value instanceof Failure) return value
    collected.push(value)
  }
  return collected
}

function itemsOf(range: unknown, macro: Macro): readonly unknown[] | Failure {
  if (Array.isArray(range)) return range
  return isMap(range) ? mapKeys(range) : noOverload(macro, range)
}
