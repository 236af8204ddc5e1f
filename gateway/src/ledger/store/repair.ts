import type { BudgetCharge, LedgerEntry } from '../entry.ts'
import type { UsageSum } from '../usage-sum.ts'
import type { LedgerBatch } from './store.ts'

/** Changes of the texts of a batch. */
export type RepairLevel =
  /** Replaces what no database stores: NUL and lone surrogates. Truncates. */
  | 'valid'
  /**
   * Also escapes what some databases refuse: every character outside ASCII. Short texts, no JSON, no details.
   * For a batch that the database has refused.
   */
  | 'plain'

/** Of indexed texts, in UTF-16 code units: an index entry of Postgres has at most 2,704 bytes. */
const maxNameLength = 512
const maxPlainLength = 100
/** Of other texts; longer JSON is dropped. */
const maxTextLength = 64 * 1024
/** Details are truncated by their producers. */
const maxDetailLength = 16 * 1024 * 1024

const longTexts: ReadonlySet<string> = new Set(['path', 'userAgent', 'refusedBy'])
const jsonTexts: ReadonlySet<string> = new Set(['guards', 'limits'])
const realNumbers: ReadonlySet<string> = new Set(['durationMs', 'firstByteMs'])

/**
 * Returns a batch that every database accepts, with the same amounts: a refused batch would block the queue.
 */
export function repairBatch(batch: LedgerBatch, level: RepairLevel): LedgerBatch {
  const entries = batch.entries.map((entry) => repairEntry(entry, level))
  return { ...batch, entries, sums: batch.sums.map((sum) => repairSum(sum, level)) }
}

/** Members of each entry that a spooled entry of an earlier version may lack. */
const defaults = { method: '', path: '', route: '', listener: '', client: '', attempts: 0 }
const defaultNames = ['method', 'path', 'route', 'listener', 'client', 'attempts'] as const

/** Returns the entry itself if it needs no repair. */
function repairEntry(given: LedgerEntry, level: RepairLevel): LedgerEntry {
  const isWhole = defaultNames.every((name) => given[name] !== undefined)
  const entry = isWhole ? given : { ...defaults, ...given }
  const members = repairMembers(entry, level)
  const tokens = entry.tokens && repairMembers(entry.tokens, level)
  const charges = repairCharges(entry.charges, level)
  const details = level === 'plain' ? {} : repairDetails(entry.details)
  if (members === entry && tokens === entry.tokens && charges === entry.charges && details === entry.details)
    return entry
  return { ...members, tokens, charges, details }
}

function repairSum(sum: UsageSum, level: RepairLevel): UsageSum {
  const { counts } = sum
  return {
    dimensions: repairMembers(sum.dimensions, level),
    counts: {
      ...repairMembers(counts, level),
      tokens: repairMembers(counts.tokens, level),
      durations: counts.durations.map(toInteger),
    },
    charges: repairCharges(sum.charges, level),
  }
}

function repairCharges(charges: readonly BudgetCharge[], level: RepairLevel): readonly BudgetCharge[] {
  const repaired = charges.map((charge) => repairMembers(charge, level))
  return repaired.some((charge, index) => charge !== charges[index]) ? repaired : charges
}

function repairDetails(details: LedgerEntry['details']): LedgerEntry['details'] {
  let repaired = details
  for (const name of ['explanation', 'request', 'response'] as const) {
    const text = details[name]
    if (typeof text !== 'string') continue
    const valid = repairText(text, maxDetailLength)
    if (valid !== text) repaired = { ...repaired, [name]: valid }
  }
  return repaired
}

/** Repairs the texts and numbers of an object; returns the object itself if there are none to repair. */
function repairMembers<T extends object>(object: T, level: RepairLevel): T {
  let repaired: T | undefined
  for (const name in object) {
    const value: unknown = object[name]
    let valid = value
    if (typeof value === 'string') valid = repairNamed(name, value, level)
    else if (typeof value === 'number') valid = realNumbers.has(name) ? toReal(value) : toInteger(value)
    if (valid === value) continue
    repaired ??= { ...object }
    Object.assign(repaired, { [name]: valid })
  }
  return repaired ?? object
}

function repairNamed(name: string, text: string, level: RepairLevel): string | undefined {
  if (jsonTexts.has(name) && (level === 'plain' || text.length > maxTextLength)) return undefined
  if (jsonTexts.has(name)) return repairText(text, maxTextLength)
  if (level === 'plain') return text.slice(0, maxPlainLength).replace(/[^\x20-\x7e]/g, escapeCharacter)
  return repairText(text, longTexts.has(name) ? maxTextLength : maxNameLength)
}

function repairText(text: string, maxLength: number): string {
  const short = text.length > maxLength ? text.slice(0, maxLength) : text
  const wellFormed = short.isWellFormed() ? short : short.toWellFormed()
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\ufffd') : wellFormed
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function toReal(value: number): number {
  return Number.isFinite(value) ? value : 0
}

function toInteger(value: number): number {
  if (Number.isSafeInteger(value)) return value
  if (Number.isNaN(value)) return 0
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(Number.MIN_SAFE_INTEGER, Math.round(value)))
}
