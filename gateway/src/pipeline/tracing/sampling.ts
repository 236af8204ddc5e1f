import type { Facts } from '../exchange.ts'
import type { TelemetryExpression } from './expressions.ts'

/** Decides whether a request is recorded. */
export type Sample = (facts: Facts) => boolean

/** Compiles a constant decision: a boolean, or the share of requests from 0 to 1. */
export function constantSample(value: boolean | number, random: () => number): Sample {
  const share = Number(value)
  if (!(share > 0)) return () => false
  return share >= 1 ? () => true : () => random() < share
}

/** Compiles a decision by an expression whose value is a boolean or a share. Other values are false. */
export function evaluatedSample(expression: TelemetryExpression, random: () => number): Sample {
  return (facts) => {
    const value = expression(facts)
    return value === true || (typeof value === 'number' && random() < value)
  }
}
