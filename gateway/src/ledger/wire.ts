import type { LedgerEntry, TokenCounts } from './entry.ts'
import { durationBounds, type UsageSum } from './usage-sum.ts'

/** Lines of entries and sums: JSON, each ended by a newline. A sum is an object with the member `sum`. */
export type WireRecord =
  | { readonly kind: 'entry'; readonly entry: LedgerEntry }
  | { readonly kind: 'sum'; readonly sum: UsageSum }

/** Line of an entry, with its newline. */
export function encodeEntry(entry: LedgerEntry): string {
  return `${JSON.stringify(entry)}\n`
}

/** Line of a sum, with its newline. */
export function encodeSum({ dimensions, counts, charges }: UsageSum): string {
  const { costPicodollars, ...rest } = counts
  const sum = { dimensions, counts: { ...rest, costPicodollars: String(costPicodollars) }, charges }
  return `${JSON.stringify({ sum })}\n`
}

/** Parses lines. Counts those that are neither an entry nor a sum, of another version for example. */
export function decodeLines(bytes: Uint8Array): { records: WireRecord[]; invalid: number } {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  const records: WireRecord[] = []
  let invalid = 0
  for (let from = 0; from < text.length; ) {
    const newline = text.indexOf('\n', from)
    const to = newline < 0 ? text.length : newline
    const record = to === from ? undefined : decodeLine(text.slice(from, to))
    if (record !== undefined) records.push(record)
    else if (to > from) invalid += 1
    from = to + 1
  }
  return { records, invalid }
}

function decodeLine(line: string): WireRecord | undefined {
  const value = parse(line)
  if (!isObject(value)) return undefined
  if ('sum' in value) {
    const sum = readSum(value['sum'])
    return sum === undefined ? undefined : { kind: 'sum', sum }
  }
  return isEntry(value) ? { kind: 'entry', entry: value } : undefined
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Members that every use of an entry requires; other members of an older version may be absent. */
function isEntry(value: object): value is LedgerEntry {
  const entry = value as Record<string, unknown>
  return (
    typeof entry['id'] === 'string' &&
    (entry['kind'] === 'llm' || entry['kind'] === 'mcp') &&
    ['startedAt', 'completedAt', 'durationMs', 'status'].every((name) => Number.isFinite(entry[name])) &&
    (entry['costPicodollars'] === undefined || Number.isSafeInteger(entry['costPicodollars'])) &&
    (entry['tokens'] === undefined || isTokenCounts(entry['tokens'])) &&
    isCharges(entry['charges']) &&
    isObject(entry['details'])
  )
}

const tokenTypes: readonly (keyof TokenCounts)[] = [
  'input',
  'output',
  'total',
  'cachedInput',
  'cacheCreationInput',
  'reasoning',
]

function isTokenCounts(value: unknown): boolean {
  return isObject(value) && tokenTypes.every((type) => Number.isFinite(value[type]))
}

function isCharges(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every(
      (charge: unknown) =>
        isObject(charge) &&
        typeof charge['budget'] === 'string' &&
        typeof charge['value'] === 'string' &&
        ['windowStart', 'windowEnd', 'amount'].every((name) => Number.isSafeInteger(charge[name])),
    )
  )
}

const counted = [
  'requests',
  'estimatedRequests',
  'unpricedRequests',
  'durationMs',
  'firstByteMs',
  'firstBytes',
]
const named = ['keyId', 'user', 'group', 'route', 'provider', 'model', 'mcpTarget']

function readSum(value: unknown): UsageSum | undefined {
  if (!isObject(value)) return undefined
  const { dimensions, counts, charges } = value
  if (!isObject(dimensions) || !isObject(counts) || !isCharges(charges)) return undefined
  const cost = counts['costPicodollars']
  const { durations } = counts
  const isValid =
    named.every((name) => typeof dimensions[name] === 'string') &&
    (dimensions['kind'] === 'llm' || dimensions['kind'] === 'mcp') &&
    Number.isSafeInteger(dimensions['hour']) &&
    Number.isSafeInteger(dimensions['status']) &&
    counted.every((name) => Number.isFinite(counts[name])) &&
    isTokenCounts(counts['tokens']) &&
    Array.isArray(durations) &&
    durations.length === durationBounds.length + 1 &&
    durations.every((count) => Number.isSafeInteger(count))
  if (!isValid || typeof cost !== 'string' || !/^-?\d{1,40}$/.test(cost)) return undefined
  return { dimensions, counts: { ...counts, costPicodollars: BigInt(cost) }, charges } as unknown as UsageSum
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
