import { compileCheckedCel } from '../../../../cel/checked.ts'
import { CelEvaluationError } from '../../../../cel/failure.ts'
import type { Facts } from '../../../../pipeline/exchange.ts'
import { routingRoots } from '../../config/model-settings.ts'
import { noMatch, type Resolution } from './resolution.ts'

type Labels = Readonly<Record<string, string>>

/** Whether the labels of a model are those that a request requires; undefined if that is not known. */
type Requirement = (facts: Facts) => ((labels: Labels | undefined) => boolean) | undefined

const roots: ReadonlySet<string> = new Set(routingRoots)

/** Refusal of a request whose required labels no target has. */
export const noLabelledTarget: Resolution = noMatch(
  'No target of this virtual model has the labels that this request requires',
)

/** Compiles `requiredLabels`. A value that is absent or not a text permits no target. */
export function compileRequiredLabels(required: Readonly<Record<string, string>>): Requirement {
  const programs = Object.entries(required).map(([label, source]) => ({
    label,
    program: compileCheckedCel(source, roots),
  }))
  return (facts) => {
    const permitted = new Map<string, ReadonlySet<unknown>>()
    for (const { label, program } of programs) {
      try {
        const value: unknown = program.evaluate(facts)
        permitted.set(label, new Set(Array.isArray(value) ? value : [value]))
      } catch (error) {
        if (error instanceof CelEvaluationError) return undefined
        throw error
      }
    }
    return (labels) =>
      [...permitted].every(([label, values]) => labels?.[label] !== undefined && values.has(labels[label]))
  }
}
