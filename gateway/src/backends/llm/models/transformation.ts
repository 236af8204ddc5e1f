import { type CelProgram, tryEvaluate } from '../../../cel/cel.ts'
import { checkCel, compileCheckedCel } from '../../../cel/checked.ts'
import { revealsCredential } from '../../../cel/references.ts'
import { jsonOfResult } from '../../../cel/results.ts'
import { revealingMistake } from '../../../cel/secret-text.ts'
import { withSharedWorkBudget } from '../../../cel/work-budget.ts'
import type { Facts } from '../../../pipeline/exchange.ts'
import type { ReportIssue } from '../../../schema/report.ts'

/** Fields with content: guards, rules and limits apply to the content of the client. */
const contentFields: ReadonlySet<string> = new Set([
  ...['messages', 'prompt', 'input', 'instructions', 'system', 'suffix', 'tools', 'stream'],
])

/** Fields that expressions compute: JSON texts by field, and fields whose expressions failed. */
export type ComputedFields = {
  readonly set: ReadonlyMap<string, string>
  readonly removed: ReadonlySet<string>
}

/** Result of a transformation. */
export type TransformedFields = ComputedFields & { readonly model: string | undefined }

/** Computes the fields of one request; `model` is the name sent without the transformation. */
export type Transform = (facts: Facts, model: string) => TransformedFields

/** Reports invalid expressions, and fields that a transformation must not compute. */
export function checkModelTransformation(
  transformation: Readonly<Record<string, string>>,
  variables: ReadonlySet<string>,
  report: ReportIssue,
): void {
  for (const [field, source] of Object.entries(transformation)) {
    if (contentFields.has(field))
      report([field], 'is checked before this expression: use llm.policies.transformations')
    if (field === 'model' && revealsCredential(source))
      report([field], `${revealingMistake}: names of models are logged`)
    checkCel(source, variables, (message) => report([field], message))
  }
}

/** Reports invalid expressions of fields that are computed from the body for the provider. */
export function checkFinalTransformation(
  transformation: Readonly<Record<string, string>>,
  variables: ReadonlySet<string>,
  report: ReportIssue,
): void {
  for (const [field, source] of Object.entries(transformation)) {
    if (field === 'stream') report([field], 'determines how the response is read: set it in overrides')
    checkCel(source, variables, (message) => report([field], message))
  }
}

/** Compiles `transformation` of a model. All expressions share the work limit of one evaluation. */
export function compileModelTransformation(
  transformation: Readonly<Record<string, string>>,
  variables: ReadonlySet<string>,
): Transform {
  const { model: modelSource, ...fields } = transformation
  const modelProgram = modelSource === undefined ? undefined : compileCheckedCel(modelSource, variables)
  const compute = compileFieldPrograms(fields, variables)
  return (facts, model) =>
    withSharedWorkBudget(() => {
      const named = { ...facts, llmRequest: { ...facts.llmRequest, model } }
      return { ...compute(named), model: modelOf(modelProgram, named) }
    })
}

/** Compiles one expression per field. All of them share the work limit of one evaluation. */
export function compileFieldPrograms(
  fields: Readonly<Record<string, string>>,
  variables: ReadonlySet<string>,
): (facts: object) => ComputedFields {
  const programs = Object.entries(fields).map(([name, source]): [string, CelProgram] => [
    name,
    compileCheckedCel(source, variables),
  ])
  return (facts) =>
    withSharedWorkBudget(() => {
      const set = new Map<string, string>()
      const removed = new Set<string>()
      for (const [name, program] of programs) {
        const text = jsonOf(program, facts)
        if (text === undefined) removed.add(name)
        else set.set(name, text)
      }
      return { set, removed }
    })
}

/** JSON text of the value of an expression; undefined if it fails or is too large. */
function jsonOf(program: CelProgram, facts: object): string | undefined {
  const result = tryEvaluate(program, facts, jsonOfResult)
  return result.kind === 'value' && typeof result.value === 'string' ? result.value : undefined
}

function modelOf(program: CelProgram | undefined, facts: object): string | undefined {
  const result = program && tryEvaluate(program, facts)
  return result?.kind === 'value' && typeof result.value === 'string' && result.value !== ''
    ? result.value
    : undefined
}
