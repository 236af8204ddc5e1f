import type { Select } from '../database/database.ts'
import { join, sql, wrap } from '../database/sql.ts'

const idsPerStatement = 500

/** Last names of keys by id, from the requests. Ids without a named request are absent. */
export async function keyNames(select: Select, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  const wanted = [...new Set(ids)].filter((id) => id !== '')
  for (let index = 0; index < wanted.length; index += idsPerStatement) {
    const values = wanted.slice(index, index + idsPerStatement).map((id) => sql('(?)', id))
    const rows = await select(
      wrap(`select column1, (${lastName}) from (values `, join(values, ', '), ') as keys'),
    )
    for (const [id, name] of rows) if (typeof name === 'string') names.set(String(id), name)
  }
  return names
}

const lastName =
  'select key_name from tollgate_requests where key_id = column1 and key_name is not null order by completed_at desc limit 1'
