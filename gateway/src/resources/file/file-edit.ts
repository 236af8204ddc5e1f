import type { Environment } from '../../config/load/environment.ts'
import { escapeReferences } from '../../config/load/escape-references.ts'
import { toPlainValue } from '../../config/load/plain-value.ts'
import type { ConfigTree } from '../../config/load/validate.ts'
import { configSchema } from '../../config/schema.ts'
import type { YamlEdit } from '../../config/yaml/draft.ts'
import { editYaml } from '../../config/yaml/edit.ts'
import { readYaml } from '../../config/yaml/yaml.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { runToCompletion } from '../../lib/scheduling/yielding.ts'
import { valueAt } from '../../schema/path.ts'
import { shapeOf } from '../../schema/shape.ts'
import {
  type ChangeOutcome,
  type ChangeRequest,
  type KindChange,
  putCreates,
  type Refusal,
  type Rotation,
  refusal,
} from '../change/change.ts'
import { type Plan, planSteps } from '../change/plan.ts'
import { preconditionFails } from '../change/precondition.ts'
import { isTree } from '../hybrid/overlay.ts'
import { findKind } from '../kinds.ts'
import { indexFile, type References, referencesAt, withReferences } from '../records/file-index.ts'
import { findPart, recordValue } from '../records/file-records.ts'
import { type RevisionKey, revisionOf } from '../records/revision.ts'
import { createFilePlanState, type FileRecord } from './plan-state.ts'
import { fileEnvelope, yamlEdits } from './yaml-edits.ts'

export type FileEditRequest = {
  readonly text: string
  readonly env: Environment
  readonly allowedEnv: readonly string[]
  readonly request: Omit<ChangeRequest, 'change'> & { readonly change: PlainChange }
  readonly revisionKey: RevisionKey
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
export function editFile({ text, env, allowedEnv, revisionKey, request, ids }: FileEditRequest): FileEdit {
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
  const { references } = indexFile(yaml, file)
  const version = { file, references, revisionKey }
  const failed = refuseRevision(request.ifMatch, change, version)
  if (failed) return failed
  const state = createFilePlanState(file, ids)
  const plan = runToCompletion(planSteps({ ...request, ifMatch: undefined, change }, state))
  if (plan.kind === 'refused') return plan
  const outcome = outcomeOf(plan)
  const edits = yamlEdits(plan, file).map((edit) => writtenEdit(edit, plan, version, allowed))
  if (edits.length === 0) return { kind: 'edited', text, outcome }
  const edited = editYaml(text, edits)
  if (edited.kind === 'refused') return refusal(500, edited.message)
  return { kind: 'edited', text: edited.text, outcome }
}

type Version = {
  readonly file: ConfigTree
  readonly references: References | undefined
  readonly revisionKey: RevisionKey
}

/** The plan refuses changes of missing records. */
function refuseRevision(
  ifMatch: string | undefined,
  change: KindChange,
  { file, references, revisionKey }: Version,
): Refusal | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined
  if (change.op === 'upsert') return preconditionFails(ifMatch, undefined)
  const part = findPart(file, change.kind, change.id)
  if (part === undefined) return putCreates(change.kind) ? preconditionFails(ifMatch, undefined) : undefined
  const written = withReferences(part.node, referencesAt(references, part.path))
  return preconditionFails(ifMatch, revisionOf(recordValue(part, written), revisionKey))
}

/** An edit with references: unchanged ones of the file, and those to allowed variables. */
function writtenEdit(
  edit: YamlEdit,
  { changes }: Plan<FileRecord>,
  { file, references }: Version,
  allowed: ReadonlySet<string>,
): YamlEdit {
  if (edit.op === 'remove') return edit
  if (edit.op === 'append') return { ...edit, value: escapeReferences(edit.value, allowed) }
  const [change] = changes
  // An entry of a map is written under its new name.
  const isRenamed =
    change?.op === 'put' && change.kind.placement.kind === 'map' && change.existing !== undefined
  const before = isRenamed ? (change.existing?.path ?? edit.path) : edit.path
  return {
    ...edit,
    value: restoreReferences(edit.value, valueAt(file, before), referencesAt(references, before), allowed),
  }
}

/** The value with the text of the file where its value is unchanged, and escaped elsewhere. */
function restoreReferences(
  value: unknown,
  current: unknown,
  references: References | string | undefined,
  allowed: ReadonlySet<string>,
): unknown {
  if (references === undefined) return escapeReferences(value, allowed)
  if (typeof references === 'string') return value === current ? references : escapeReferences(value, allowed)
  if (typeof value !== 'object' || value === null) return escapeReferences(value, allowed)
  const restore = (step: string | number, member: unknown) =>
    restoreReferences(member, valueAt(current, [step]), referencesAt(references, [step]), allowed)
  if (Array.isArray(value)) return value.map((item, index) => restore(index, item))
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, restore(key, member)]))
}

function outcomeOf({ changes }: Plan<FileRecord>): Exclude<ChangeOutcome, Refusal> {
  const [first] = changes
  if (first?.op === 'remove') return { kind: 'removed', id: first.existing.id }
  return {
    kind: 'stored',
    resources: changes.flatMap((change) => (change.op === 'put' ? [fileEnvelope(change)] : [])),
  }
}
