import { isObject, type JsonObject } from '../../../schema-form/model/value.ts'

export type Direction = 'request' | 'response'

/** A guard: one kind with its settings, and a name and rejection. */
export type Guard = JsonObject

/** The value of `llm.policies.guardrails`. */
export type Guardrails = JsonObject & {
  readonly request?: readonly Guard[]
  readonly response?: readonly Guard[]
}

/** Kind of a guard: the first of the known kinds that is set. */
export function kindOf(guard: Guard, kinds: readonly string[]): string | undefined {
  return kinds.find((kind) => guard[kind] !== undefined)
}

/** Action of a guard, such as `mask`. */
export function actionOf(guard: Guard, kind: string | undefined): string | undefined {
  const settings = kind === undefined ? undefined : guard[kind]
  const action = isObject(settings) ? settings['action'] : undefined
  return typeof action === 'string' ? action : undefined
}

/** The settings that identify a guard for a reader: its patterns, or its server. */
export function summaryOf(guard: Guard, kind: string | undefined): string {
  const settings = kind === undefined ? undefined : guard[kind]
  if (!isObject(settings)) return ''
  const { rules, analyzer, target = analyzer } = settings
  if (Array.isArray(rules)) return rules.map(ruleText).join(', ')
  if (isObject(target)) return Object.values(target).map(String).join(', ')
  return Object.entries(settings)
    .flatMap(([name, value]) => (typeof value === 'string' && name !== 'action' ? [value] : []))
    .join(', ')
}

function ruleText(rule: unknown): string {
  if (!isObject(rule)) return ''
  return String(rule['builtin'] ?? rule['pattern'] ?? '')
}
