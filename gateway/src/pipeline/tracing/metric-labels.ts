import { withSharedWorkBudget } from '../../cel/work-budget.ts'
import type { Exchange } from '../exchange.ts'
import { variablesAtEnd, withoutCredentials } from './end-variables.ts'
import { attributeValue, type TelemetryExpression } from './expressions.ts'

/** Combinations of values in one data plane. Clients may choose values, and each is a series in memory. */
const maxCombinations = 1_000
const maxValueLength = 128
const beyondLimit = 'other'

/**
 * Creates the labels of `config.metrics.fields`. An expression without a value is an empty label. Beyond the
 * limit of combinations, all values are `other`.
 */
export function createMetricLabels(
  expressions: readonly TelemetryExpression[],
  sensitive: ReadonlySet<string>,
): (exchange: Exchange) => () => readonly string[] {
  const combinations = new Map<string, readonly string[]>()
  const others = expressions.map(() => beyondLimit)

  function evaluate(exchange: Exchange): readonly string[] {
    const variables = withoutCredentials(variablesAtEnd(exchange, { status: undefined }), sensitive)
    const values = withSharedWorkBudget(() => expressions.map((expression) => textOf(expression(variables))))
    const key = values.join('\u0000')
    const known = combinations.get(key)
    if (known !== undefined) return known
    if (combinations.size >= maxCombinations) return others
    combinations.set(key, values)
    return values
  }

  return (exchange) => {
    let values: readonly string[] | undefined
    return () => {
      values ??= evaluate(exchange)
      return values
    }
  }
}

function textOf(value: unknown): string {
  const text = attributeValue(value)
  if (text === undefined) return ''
  return String(text).slice(0, maxValueLength).toWellFormed().replaceAll('\u0000', '')
}
