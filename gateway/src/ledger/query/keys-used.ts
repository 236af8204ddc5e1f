import type { QueryDatabase } from './database/database.ts'
import { list, wrap } from './database/sql.ts'

const idsPerStatement = 500

/** Times of the last request of keys by id, in milliseconds since the epoch. Unused keys are absent. */
export async function readKeysUsed(
  { use }: QueryDatabase,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  return await use(async (select) => {
    const times = new Map<string, number>()
    for (let index = 0; index < ids.length; index += idsPerStatement) {
      const wanted = list(ids.slice(index, index + idsPerStatement))
      const rows = await select(
        wrap('select key_id, last_used_at from tollgate_keys_used where key_id in (', wanted, ')'),
      )
      for (const [id, time] of rows) times.set(String(id), Number(time))
    }
    return times
  })
}
