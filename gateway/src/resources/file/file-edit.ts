import type { Environment } from '../../config/load/environment.ts'
import { escapeReferences } from '../../config/load/escape-references.ts'
import { toPlainValue } from '../../config/load/plain-value.ts'
import { configSchema } from '../../config/schema.ts'
import { editYaml } from '../../config/yaml/edit.ts'
import { readYaml } from '../../config/yaml/yaml.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { runToCompletion } from '../../lib/scheduling/yielding.ts'
import { shapeOf } from '../../schema/shape.ts'
import {
  type ChangeOutcome,
  type ChangeRequest,
  type KindChange,
  type Refusal,
  type Rotation,
  refusal,
} from '../change/change.ts'
import { type Plan, planSteps } from '../change/plan.ts'
import { preconditionFails } from '../change/precondition.ts'
import { isTree } from '../hybrid/overlay.ts'
import { findKind } from '../kinds.ts'
import { createFilePlanState, type FileRecord } from './plan-state.ts'
import { fileEnvelope, yamlEdits } from './yaml-edits.ts'

export type FileEditRequest = {
  readonly text: string
  readonly env: Environment
  readonly allowedEnv: readonly string[]
  readonly request: Omit<ChangeRequest, 'change'> & { readonly change: PlainChange }
  /** Ids for new keys, one for each value. */
  readonly ids: readonly string[]
}

/** A change with the name of its kind, for transfer to another thread. */
export type PlainChange =
  | { readonly op: 'upsert'; readonly kind: string; readonly values: readonly JsonValue[] }
  | { readonly op: 'replace'; readonly kind: string; readonly id: string; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly kind: string; readonly id: string }
  | { readonly op: 'rotate'; readonly kind: string; readonly id: string; readonly rotation: Rotation }

export type FileEdit =
  | Refusal
  | { readonly kind: 'edited'; readonly text: string; readonly outcome: Exclude<ChangeOutcome, Refusal> }

/**
 * Text of the configuration file after a change, and the outcome. Parses the text twice: intended for a
 * separate thread.
 */
export function editFile({ text, env, allowedEnv, request, ids }: FileEditRequest): FileEdit {
  const kind = findKind(request.change.kind)
  if (kind === undefined) return refusal(400, `unsupported config resource kind: ${request.change.kind}`)
  const yaml = readYaml(text.startsWith('\uFEFF') ? text.slice(1) : text)
  const plain = toPlainValue(yaml.tree, shapeOf(configSchema), env)
  if (yaml.mistakes.length + plain.mistakes.length > 0 || !isTree(plain.value)) {
    return refusal(500, 'the configuration file has mistakes; correct them by hand first')
  }
  const file = plain.value
  const allowed = new Set(allowedEnv)
  const change: KindChange = { ...request.change, kind }
  // Records of a file have no revision: `*` matches all of them, and a revision none.
  const failed = request.ifMatch?.trim() === '*' ? undefined : preconditionFails(request.ifMatch, undefined)
  if (failed) return failed
  const state = createFilePlanState(file, ids)
  const plan = runToCompletion(planSteps({ ...request, ifMatch: undefined, change }, state))
  if (plan.kind === 'refused') return plan
  const outcome = outcomeOf(plan)
  const edits = yamlEdits(plan, file).map((edit) =>
    edit.op === 'remove' ? edit : { ...edit, value: escapeReferences(edit.value, allowed) },
  )
  if (edits.length === 0) return { kind: 'edited', text, outcome }
  const edited = editYaml(text, edits)
  if (edited.kind === 'refused') return refusal(500, edited.message)
  return { kind: 'edited', text: edited.text, outcome }
}

function outcomeOf({ changes }: Plan<FileRecord>): Exclude<ChangeOutcome, Refusal> {
  const [first] = changes
  if (first?.op === 'remove') return { kind: 'removed', id: first.existing.id }
  return {
    kind: 'stored',
    resources: changes.flatMap((change) => (change.op === 'put' ? [fileEnvelope(change)] : [])),
  }
}
