import type { CelProgram } from '../../cel/cel.ts'
import type { ExpressionMeter } from '../../telemetry/otlp/export-meters.ts'
import { type TelemetryExpression, telemetryExpression } from './expressions.ts'

/** A field of the configuration: its name, and the values of its expression. */
export type TelemetryField = {
  readonly name: string
  /** Calls `add` with each name and value; several times for `flatten()` and `flattenRecursive()`. */
  evaluate(variables: object, add: (name: string, value: unknown) => void): void
}

/** Limit of fields of one flattened value, and of their depth. */
const maxMembers = 128
const maxDepth = 8

/** Compiles a field. Members of flattened maps are fields with the name of the field in front. */
export function telemetryField(name: string, program: CelProgram, meter: ExpressionMeter): TelemetryField {
  const expression: TelemetryExpression = telemetryExpression(program, meter)
  const { flattens } = program
  if (flattens === undefined) {
    return { name, evaluate: (variables, add) => add(name, expression(variables)) }
  }
  const depth = flattens === 'all' ? maxDepth : 1
  return {
    name,
    evaluate(variables, add) {
      let left = maxMembers
      const visit = (path: string, value: unknown, levels: number) => {
        if (levels === 0 || typeof value !== 'object' || value === null) {
          if (left > 0) add(path, value)
          left -= 1
          return
        }
        for (const [key, member] of Object.entries(value)) {
          if (left <= 0) return
          visit(`${path}.${key}`, member, levels - 1)
        }
      }
      visit(name, expression(variables), depth)
    },
  }
}
