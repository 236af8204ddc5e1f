import { stringMethods } from '../closures/string-methods.ts'
import { isMap, noOverload } from '../closures/values.ts'
import { SecretText } from '../secret-text.ts'
import { addressFunctions } from './addresses.ts'
import { encodingFunctions } from './encoding.ts'
import type { CelFunction } from './function.ts'
import { headerFunctions, joinHeaders } from './header-views.ts'
import { jsonFunctions } from './json.ts'
import { mapFunctions } from './maps.ts'
import { mathFunctions } from './math.ts'
import { randomFunctions } from './random.ts'

const joinTexts = stringMethods.find(({ name, args }) => name === 'join' && args.length === 0)

/** Functions of the gateway, beyond those of the library. */
export const gatewayFunctions: readonly CelFunction[] = [
  ...jsonFunctions,
  ...encodingFunctions,
  ...mapFunctions,
  ...randomFunctions,
  ...addressFunctions,
  ...headerFunctions,
  {
    name: 'join',
    isMethod: true,
    arity: 1,
    apply: (target) => (isMap(target) ? joinHeaders(target) : joinTexts?.apply(target, [])),
  },
  ...mathFunctions,
  {
    name: 'unredacted',
    isMethod: true,
    arity: 1,
    apply: (value) => (value instanceof SecretText ? value.reveal() : noOverload('unredacted', value)),
  },
]

const byName = Map.groupBy(gatewayFunctions, ({ name }) => name)

/** The function of a call; `values` counts the target of a method. */
export function findFunction(name: string, isMethod: boolean, values: number): CelFunction | undefined {
  return byName
    .get(name)
    ?.find(
      (entry) =>
        entry.isMethod === isMethod &&
        (entry.arity === values || (entry.isVariadic === true && values > entry.arity)),
    )
}
