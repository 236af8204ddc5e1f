import type { KeyBudget, KeyLimit, KeyValue } from '../../../../api/llm/keys.ts'

/** Fields of the form of a key, as texts of inputs. */
export type KeyDraft = {
  readonly name: string
  readonly user: string
  readonly group: string
  /** Further metadata. */
  readonly metadata: readonly MetadataDraft[]
  /** Undefined: all. */
  readonly models: readonly string[] | undefined
  readonly targets: readonly string[] | undefined
  /** Local time, as of an input for date and time; empty: never. */
  readonly expiresAt: string
  readonly disabled: boolean
  readonly limits: readonly LimitDraft[]
  readonly budgets: readonly BudgetDraft[]
}

export type MetadataDraft = { readonly name: string; readonly value: string }

export type LimitDraft = {
  readonly of: 'requests' | 'tokens'
  readonly amount: string
  readonly unit: KeyLimit['unit']
  readonly burst: string
}

export type BudgetDraft = {
  readonly name: string
  readonly unit: 'USD' | 'Tokens'
  readonly amount: string
  /** `day`, `week` or `month`, or a duration. */
  readonly window: string
  readonly timeZone: string
  readonly action: 'Block' | 'Audit'
  /** Percent; empty: no warning. */
  readonly warnAt: string
}

export const emptyDraft: KeyDraft = {
  name: '',
  user: '',
  group: '',
  metadata: [],
  models: undefined,
  targets: undefined,
  expiresAt: '',
  disabled: false,
  limits: [],
  budgets: [],
}

const named = ['name', 'user', 'group', 'id']

export function draftOf(value: KeyValue): KeyDraft {
  const { metadata = {}, allowedModels, allowedTargets, expiresAt, disabled, limits, budgets } = value
  return {
    name: textOf(metadata['name']),
    user: textOf(metadata['user']),
    group: textOf(metadata['group']),
    metadata: Object.entries(metadata)
      .filter(([name]) => !named.includes(name))
      .map(([name, member]) => ({ name, value: textOf(member) })),
    models: allowedModels,
    targets: allowedTargets,
    expiresAt: expiresAt === undefined ? '' : localTime(expiresAt),
    disabled: disabled ?? false,
    limits: (limits ?? []).map(limitDraft),
    budgets: (budgets ?? []).map(budgetDraft),
  }
}

/** The record of a draft. Members of `base` without a field in the form, such as the secret, stay. */
export function recordOf(draft: KeyDraft, base: KeyValue): KeyValue {
  const { metadata: known = {}, ...rest } = base
  const changed = {
    metadata: metadataOf(draft, known),
    allowedModels: draft.models,
    allowedTargets: draft.targets,
    expiresAt: draft.expiresAt === '' ? undefined : timeOf(draft.expiresAt, base.expiresAt),
    disabled: draft.disabled ? true : undefined,
    limits: draft.limits.length === 0 ? undefined : draft.limits.map(limitOf),
    budgets: draft.budgets.length === 0 ? undefined : draft.budgets.map(budgetOf),
  }
  const merged = { ...rest, ...changed }
  return Object.fromEntries(Object.entries(merged).filter(([, member]) => member !== undefined))
}

/** Mistake of a field, by the path of the field in the draft. */
export type DraftMistakes = ReadonlyMap<string, string>

/** Mistakes that the form reports itself; the gateway checks the whole record. */
export function mistakesIn(draft: KeyDraft): DraftMistakes {
  const mistakes = new Map<string, string>()
  const names = draft.metadata.map(({ name }) => name)
  draft.metadata.forEach(({ name }, index) => {
    if (name === '') mistakes.set(`metadata.${index}`, 'Enter a name.')
    else if (named.includes(name) || names.indexOf(name) !== index)
      mistakes.set(`metadata.${index}`, 'This name is in use.')
  })
  draft.limits.forEach(({ amount, burst }, index) => {
    if (!isWhole(amount) || Number(amount) < 1)
      mistakes.set(`limits.${index}.amount`, 'Enter a whole number from 1.')
    if (burst !== '' && !isWhole(burst)) mistakes.set(`limits.${index}.burst`, 'Enter a whole number.')
  })
  draft.budgets.forEach((budget, index) => {
    const { name, unit, amount, window, warnAt } = budget
    if (name.trim() === '') mistakes.set(`budgets.${index}.name`, 'Enter a name.')
    else if (draft.budgets.findIndex((other) => other.name === name) !== index)
      mistakes.set(`budgets.${index}.name`, 'Another budget has this name.')
    const isAmount = unit === 'USD' ? /^\d{1,9}(\.\d{1,9})?$/.test(amount) : isWhole(amount)
    if (!isAmount || Number(amount) <= 0)
      mistakes.set(
        `budgets.${index}.amount`,
        unit === 'USD' ? 'Enter an amount above 0.' : 'Enter a whole number from 1.',
      )
    if (!isCalendar(window) && !/^(\d+(\.\d+)?(ms|[smhd]))+$/.test(window))
      mistakes.set(`budgets.${index}.window`, 'Enter a duration such as 24h or 7d.')
    if (warnAt !== '' && !(Number(warnAt) > 0 && Number(warnAt) <= 100))
      mistakes.set(`budgets.${index}.warnAt`, 'Enter a percentage from 1 to 100.')
  })
  return mistakes
}

export function isCalendar(window: string): window is 'day' | 'week' | 'month' {
  return window === 'day' || window === 'week' || window === 'month'
}

function metadataOf(
  draft: KeyDraft,
  known: Readonly<Record<string, unknown>>,
): Record<string, unknown> | undefined {
  const entries: [string, unknown][] = [
    ...(['name', 'user', 'group'] as const).flatMap((field): [string, unknown][] =>
      draft[field] === '' ? [] : [[field, draft[field]]],
    ),
    ...draft.metadata.map(({ name, value }): [string, unknown] => [
      name,
      // An unchanged value keeps its type.
      Object.hasOwn(known, name) && textOf(known[name]) === value ? known[name] : value,
    ]),
  ]
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

function limitDraft({ requests, tokens, unit, burst }: KeyLimit): LimitDraft {
  return {
    of: tokens === undefined ? 'requests' : 'tokens',
    amount: String(tokens ?? requests ?? ''),
    unit,
    burst: burst === undefined ? '' : String(burst),
  }
}

function limitOf({ of, amount, unit, burst }: LimitDraft): KeyLimit {
  return { [of]: Number(amount), unit, ...(burst === '' ? {} : { burst: Number(burst) }) }
}

function budgetDraft({ name, limit, window, onBudgetExceeded, warnAt }: KeyBudget): BudgetDraft {
  return {
    name,
    unit: limit.unit,
    amount: String(limit.amount),
    window: window.calendar ?? window.rolling ?? '',
    timeZone: window.timeZone ?? '',
    action: onBudgetExceeded ?? 'Block',
    warnAt: warnAt === undefined ? '' : String(Math.round(warnAt * 1e6) / 1e4),
  }
}

function budgetOf({ name, unit, amount, window, timeZone, action, warnAt }: BudgetDraft): KeyBudget {
  return {
    name,
    limit: { unit, amount: Number(amount) },
    window: isCalendar(window)
      ? { calendar: window, ...(timeZone === '' ? {} : { timeZone }) }
      : { rolling: window },
    ...(action === 'Audit' ? { onBudgetExceeded: 'Audit' as const } : {}),
    ...(warnAt === '' ? {} : { warnAt: Math.round(Number(warnAt) * 1e4) / 1e6 }),
  }
}

function textOf(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function isWhole(text: string): boolean {
  return /^\d{1,15}$/.test(text)
}

/** A time in the form of `<input type="datetime-local">`, in the time zone of the browser. */
function localTime(time: string): string {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return ''
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000)
  return shifted.toISOString().slice(0, 16)
}

/** The time of an input, RFC 3339 in UTC. An unchanged time stays as it was written. */
function timeOf(local: string, before: string | undefined): string {
  if (before !== undefined && localTime(before) === local) return before
  return new Date(local).toISOString().replace('.000Z', 'Z')
}
