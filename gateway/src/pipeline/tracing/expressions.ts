import type { CelProgram } from '../../cel/cel.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import { evaluateToWrite } from '../../cel/results.ts'
import type { AttributeValue } from '../../telemetry/otlp/encode.ts'
import type { ExpressionMeter } from '../../telemetry/otlp/export-meters.ts'

/** An expression of telemetry. Its failure is counted, and its value is then undefined. */
export type TelemetryExpression = (variables: object) => unknown

/** Limit of a value in characters. */
const maxValueLength = 16 * 1024

/** Compiles an expression. */
export function telemetryExpression(program: CelProgram, meter: ExpressionMeter): TelemetryExpression {
  return (variables) => {
    try {
      return evaluateToWrite(program, variables)
    } catch (error) {
      if (!(error instanceof CelEvaluationError)) throw error
      meter.failed()
      return undefined
    }
  }
}

/** Whether a filter admits; an expression that fails, or has another type, does not. */
export function admits(filter: TelemetryExpression | undefined, variables: object): boolean {
  return filter === undefined || filter(variables) === true
}

/** Value of an attribute; undefined without a value. Lists and maps are JSON, except lists of texts. */
export function attributeValue(value: unknown): AttributeValue | undefined {
  switch (typeof value) {
    case 'string':
      return bounded(value)
    case 'boolean':
    case 'number':
      return value
    case 'bigint':
      return String(value)
    case 'object':
      if (value === null) return undefined
      if (Array.isArray(value) && value.every((item) => typeof item === 'string'))
        return value.slice(0, maxListItems).map(bounded)
      return bounded(textOf(value))
    default:
      return undefined
  }
}

const maxListItems = 64

function bounded(text: string): string {
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? String(item) : item)) ?? ''
}
