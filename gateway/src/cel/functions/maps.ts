import { isMap, mapEntries, noOverload } from '../closures/values.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import { type CelFunction, unaryFunction } from './function.ts'

/** Functions of maps. `flatten` and `flattenRecursive` change the names of log fields only. */
export const mapFunctions: readonly CelFunction[] = [
  { name: 'merge', isMethod: true, arity: 2, apply: merge },
  ...['flatten', 'flattenRecursive', 'flatten_recursive'].map((name) =>
    unaryFunction(name, (value) =>
      Array.isArray(value) || isMap(value) ? value : new Failure(`${name}() requires a map or a list`),
    ),
  ),
]

/** Work units per entry. */
const costOfEntry = 300

function merge(left: unknown, right: unknown): unknown {
  if (!isMap(left) || !isMap(right)) return noOverload('merge', left, right)
  const merged = new Map(mapEntries(left))
  for (const [key, value] of mapEntries(right)) merged.set(key, value)
  spendWork((merged.size + 2) * costOfEntry)
  return merged
}
