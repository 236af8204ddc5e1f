import type { JsonEdits } from '../../../lib/json/edit.ts'
import { exactObject } from '../../../lib/json/exact.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import type { Facts } from '../../../pipeline/exchange.ts'
import { routingRoots } from '../config/model-settings.ts'
import { compileFieldPrograms } from '../models/transformation.ts'

const variables: ReadonlySet<string> = new Set(routingRoots)

/** Computes fields of a body in the API of the provider, which `llmRequest` is here. */
export type FinalTransform = (facts: Facts, body: JsonText) => JsonEdits

/** Compiles `finalTransformation` of a model. All expressions share the work limit of one evaluation. */
export function compileFinalTransformation(source: Readonly<Record<string, string>>): FinalTransform {
  const compute = compileFieldPrograms(source, variables)
  return (facts, body) => {
    const { set, removed } = compute({ ...facts, llmRequest: exactObject(body) })
    return { set, remove: removed }
  }
}
