import type { LedgerEntry } from '../../ledger/entry.ts'
import type { JsonObject } from '../../lib/json/json.ts'
import { isJsonObject } from '../../lib/json/json.ts'
import { dollarsOf } from '../../lib/picodollars.ts'
import type { Exchange } from '../exchange.ts'
import type { Recording } from './recording.ts'

/** Inputs of a cause: the entry, and the described policies. */
export type CauseInputs = { readonly entry: LedgerEntry; readonly policies: readonly JsonObject[] }

/** The cause of the outcome of a request in one sentence. */
export function causeOf(exchange: Exchange, recording: Recording, inputs: CauseInputs): string {
  const { entry } = inputs
  const { refusedBy, status, incomplete } = entry
  if (refusedBy !== undefined) return refusalCause(exchange, recording, inputs, refusedBy)
  const last = recording.attempts?.at(-1)
  const failed = recording.attempts?.filter(({ failure }) => failure !== undefined) ?? []
  if (status === 499) return 'the client closed the connection before the response'
  if (incomplete)
    return exchange.cancellation.cancelled
      ? 'the client closed the connection during the response'
      : 'the response ended early'
  if (last !== undefined && last.failure === undefined && failed.length > 0)
    return `served by ${last.target} after ${failed.map(({ target, failure }) => `${target} failed (${failure})`).join(', ')}`
  if (status >= 400 && last?.status !== undefined)
    return `${last.target} responded with status ${last.status}`
  return status >= 400 ? `status ${status}` : 'served'
}

function refusalCause(
  exchange: Exchange,
  recording: Recording,
  { entry, policies }: CauseInputs,
  refusedBy: string,
): string {
  const colon = refusedBy.indexOf(': ')
  const policy = colon === -1 ? refusedBy : refusedBy.slice(0, colon)
  switch (policy) {
    case 'authorization':
      return ruleCause(refusedBy, policies.at(-1)?.['decision'])
    case 'mcp-authorization':
      return itemCause(refusedBy, recording)
    case 'rate-limit':
      return limitCause(refusedBy, recording)
    case 'budget':
      return budgetCause(exchange, refusedBy)
    case 'guardrail':
      return guardCause(refusedBy, recording)
    case 'model_not_allowed':
      return `the key does not permit ${modelOf(entry)}`
    case 'model_not_found':
      return `${modelOf(entry)} is not configured`
    case 'not_found':
      return `no endpoint has the path ${entry.path}`
    default:
      return upstreamCause(exchange, recording, refusedBy)
  }
}

function modelOf({ requestModel }: LedgerEntry): string {
  return requestModel === undefined ? 'the requested model' : `the model "${requestModel}"`
}

/** The rule of a refusal with its expression. */
function ruleCause(refusedBy: string, decision: unknown): string {
  if (!isJsonObject(decision) || !Array.isArray(decision['rules'])) return refusedBy
  const name = refusedBy.slice(refusedBy.indexOf(': ') + 2)
  const rule = decision['rules'].find((each) => isJsonObject(each) && name.startsWith(String(each['rule'])))
  const scope = typeof decision['scope'] === 'string' ? ` of ${decision['scope']}` : ''
  if (!isJsonObject(rule)) return `${refusedBy}${scope}`
  const { expression, error } = rule
  return `${refusedBy}${scope}: ${String(expression)}${error === undefined ? '' : ` (${String(error)})`}`
}

function itemCause(refusedBy: string, { items }: Recording): string {
  const item = items?.findLast(({ permitted }) => !permitted)
  if (item === undefined) return refusedBy
  const { kind, name, target } = item.item
  const at = target === '' ? '' : ` of target ${target}`
  const label = refusedBy.slice(refusedBy.indexOf(': ') + 2)
  return `${label} of ${item.rules} refuses ${kind} "${name}"${at}`
}

/** The exhausted limit that resets last. */
function limitCause(refusedBy: string, { limits }: Recording): string {
  const label = refusedBy.slice(refusedBy.indexOf(': ') + 2)
  const limit = limits?.findLast((each) => each.refused && each.limit === label)
  if (limit === undefined) return refusedBy
  const { capacity, unit, resetSeconds } = limit
  return `the limit "${label}" of ${capacity} ${unit} is exhausted; it resets in ${resetSeconds} s`
}

/** The used-up budget that resets last. */
function budgetCause({ budgets = [] }: Exchange, refusedBy: string): string {
  const refusing = budgets.filter(({ outcome }) => outcome === 'refused')
  const budget = refusing.toSorted((a, b) => a.window.end - b.window.end).at(-1)
  if (budget === undefined) return refusedBy
  const { name, limit, unit, window } = budget
  const reset = new Date(window.end).toISOString()
  const shownUnit = unit === 'usd' ? 'USD' : unit
  return `the budget "${name}" of ${amountOf(limit, unit)} ${shownUnit} is used up; it resets at ${reset}`
}

/** An amount of a budget in tokens or US dollars. */
export function amountOf(counted: number, unit: 'usd' | 'tokens'): number {
  return unit === 'usd' ? dollarsOf(counted) : counted
}

function guardCause(refusedBy: string, { guards }: Recording): string {
  const name = refusedBy.slice(refusedBy.indexOf(': ') + 2)
  const decision = guards?.findLast(({ guard, outcome }) => guard === name && outcome !== 'allow')
  if (decision === undefined) return refusedBy
  const { phase, outcome, reason } = decision
  return `the guard "${name}" refused the ${phase} (${outcome}${reason === undefined ? '' : `: ${reason}`})`
}

/** A failure of the upstream with the failed attempts. */
function upstreamCause({ cancellation }: Exchange, { attempts = [] }: Recording, refusedBy: string): string {
  const failed = attempts.filter(({ failure }) => failure !== undefined)
  if (cancellation.cancelled && failed.length === 0) return `${refusedBy}: the client closed the connection`
  if (failed.length === 0) return refusedBy
  return `${refusedBy}: ${failed.map(({ target, failure }) => `${target} failed (${failure})`).join(', ')}`
}
