import { randomUUID } from 'node:crypto'
import { noOverload } from '../closures/values.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import { type CelFunction, unaryFunction } from './function.ts'

/** Functions whose value differs between calls, and `fail`. */
export const randomFunctions: readonly CelFunction[] = [
  {
    name: 'uuid',
    isMethod: false,
    arity: 0,
    apply() {
      spendWork(2_500)
      return randomUUID()
    },
  },
  { name: 'random', isMethod: false, arity: 0, apply: () => Math.random() },
  unaryFunction('fail', (message) =>
    typeof message === 'string' ? new Failure('fail() was called') : noOverload('fail', message),
  ),
]
