import { systemClock } from '../../src/lib/clock.ts'
import { createPostgresStore } from '../../src/resources/stores/postgres/postgres.ts'
import { createSqliteStore } from '../../src/resources/stores/sqlite/sqlite.ts'

// A process that writes three records with one number, repeatedly, and reports each committed number to its
// parent. Tests kill it: `store-writer.ts sqlite PATH` or `store-writer.ts postgres URL`.

const [kind, address = ''] = process.argv.slice(2)
const settings = { clock: systemClock, secretPaths: () => () => [] }
const store =
  kind === 'sqlite'
    ? createSqliteStore({ ...settings, path: address })
    : createPostgresStore({ ...settings, url: address })

const { changed } = await store.read(undefined)
const last = Number(changed[0]?.value['n'] ?? 0)
const padding = 'x'.repeat(10_000)
for (let n = last + 1; ; n += 1) {
  await store.write(0, () =>
    Promise.resolve(
      ['a', 'b', 'c'].map((id) => ({ op: 'put' as const, kind: 'test', id, value: { n, padding } })),
    ),
  )
  process.send?.(n)
}
