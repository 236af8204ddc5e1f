import { decimalDollars } from '../../../lib/picodollars.ts'
import type { LedgerEntry } from '../../entry.ts'
import type { QueryDatabase } from '../database/database.ts'
import type { Position } from '../search/filter.ts'
import { planScan, readPage } from '../search/scan.ts'
import { readRequests } from '../search/search.ts'
import type { ExportPage, ExportQuery } from './contents.ts'
import { csvLine } from './csv.ts'

const pageRows = 1_000

/** Reads the next lines of an export of requests. */
export async function exportRequests(
  { dialect, use }: QueryDatabase,
  { filter }: ExportQuery & { kind: 'requests' },
  after: Position | undefined,
): Promise<ExportPage> {
  return await use(async (select) => {
    const scan = await planScan(select, { filter, after, order: 'oldest', columns: [], dialect })
    const { positions, next } = await readPage(select, scan, pageRows)
    const requests = await readRequests(select, positions)
    const lines = requests.map(({ entry }) => csvLine(columns.map(([, read]) => read(entry))))
    const head = after === undefined ? csvLine(columns.map(([name]) => name)) : ''
    return { csv: head + lines.join(''), next: next && { kind: 'requests', after: next } }
  })
}

type Column = [name: string, read: (entry: LedgerEntry) => string | number | boolean | undefined]

const columns: readonly Column[] = [
  ['id', (entry) => entry.id],
  ['kind', (entry) => entry.kind],
  ['startedAt', (entry) => timeOf(entry.startedAt)],
  ['completedAt', (entry) => timeOf(entry.completedAt)],
  ['durationMs', (entry) => entry.durationMs],
  ['firstByteMs', (entry) => entry.firstByteMs],
  ['status', (entry) => entry.status],
  ['errorCode', (entry) => entry.errorCode],
  ['refusedBy', (entry) => entry.refusedBy],
  ['method', (entry) => entry.method],
  ['path', (entry) => entry.path],
  ['route', (entry) => entry.route],
  ['listener', (entry) => entry.listener],
  ['keyId', (entry) => entry.keyId],
  ['keyName', (entry) => entry.keyName],
  ['user', (entry) => entry.user],
  ['group', (entry) => entry.group],
  ['client', (entry) => entry.client],
  ['userAgent', (entry) => entry.userAgent],
  ['operation', (entry) => entry.operation],
  ['provider', (entry) => entry.provider],
  ['requestModel', (entry) => entry.requestModel],
  ['servedModel', (entry) => entry.servedModel],
  ['streaming', (entry) => entry.streaming],
  ['attempts', (entry) => entry.attempts],
  ['cache', (entry) => entry.cache],
  ['settles', (entry) => entry.settles],
  ['inputTokens', (entry) => entry.tokens?.input],
  ['cachedInputTokens', (entry) => entry.tokens?.cachedInput],
  ['cacheCreationInputTokens', (entry) => entry.tokens?.cacheCreationInput],
  ['outputTokens', (entry) => entry.tokens?.output],
  ['reasoningTokens', (entry) => entry.tokens?.reasoning],
  ['totalTokens', (entry) => entry.tokens?.total],
  ['tokensEstimated', (entry) => entry.tokensEstimated],
  ['costUsd', (entry) => costOf(entry)],
  ['costStatus', (entry) => entry.costStatus],
  ['mcpMethod', (entry) => entry.mcpMethod],
  ['mcpTarget', (entry) => entry.mcpTarget],
  ['mcpItem', (entry) => entry.mcpItem],
  ['traceId', (entry) => entry.traceId],
  ['upstreamRequestId', (entry) => entry.upstreamRequestId],
  ['incomplete', (entry) => entry.incomplete],
]

function costOf({ costPicodollars }: LedgerEntry): string | undefined {
  return costPicodollars === undefined ? undefined : decimalDollars(BigInt(costPicodollars))
}

function timeOf(time: number): string {
  return new Date(time).toISOString()
}
