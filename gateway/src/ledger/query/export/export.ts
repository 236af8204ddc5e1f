import type { QueryDatabase } from '../database/database.ts'
import type { ExportPage, ExportPosition, ExportQuery } from './contents.ts'
import { exportRequests } from './requests.ts'
import { exportUsage } from './usage.ts'

/** Reads the lines after a position; the first page begins with the names of the columns. */
export function exportPage(
  database: QueryDatabase,
  query: ExportQuery,
  position: ExportPosition | undefined,
): Promise<ExportPage> {
  if (query.kind === 'requests')
    return exportRequests(database, query, position?.kind === 'requests' ? position.after : undefined)
  return exportUsage(database, query, position?.kind === 'usage' ? position.at : undefined)
}
