import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { createSteppingClock, type Replica, startHybrid } from '../../../test/fixtures/resources.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { secretPaths } from '../secrets/secret-paths.ts'
import { createSqliteStore } from '../stores/sqlite/sqlite.ts'
import type { HistoryRecord } from '../stores/store.ts'

// After any sequence of writes and reverts, the history alone yields the state of the store.

const folder = mkdtempSync(join(tmpdir(), 'tollgate-history-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const model = fc.record({
  name: fc.constantFrom('a', 'b'),
  provider: fc.constantFrom('echo', 'nobody'),
  visibility: fc.constantFrom('public', 'internal'),
})
const key = fc.record(
  { key: fc.constantFrom('k1', 'k2', 'enc:v2:x'), metadata: fc.record({ name: fc.constantFrom('x', 'y') }) },
  { requiredKeys: ['key'] },
)
const kinds = ['llm.model', 'llm.apiKey'] as const
const step = fc.oneof(
  fc.record({ op: fc.constant('put' as const), kind: fc.constant(kinds[0]), value: model, which: fc.nat(3) }),
  fc.record({ op: fc.constant('put' as const), kind: fc.constant(kinds[1]), value: key, which: fc.nat(3) }),
  fc.record({ op: fc.constant('remove' as const), kind: fc.constantFrom(...kinds), which: fc.nat(3) }),
  fc.record({ op: fc.constant('revert' as const), which: fc.nat(12) }),
)

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

type Listed = { resources: { kind: string; id: string; revision: number; value: JsonValue }[] }

async function listed(replica: Replica, kind = ''): Promise<Listed['resources']> {
  return ((await replica.call('GET', `${kind}?reveal=true`)).body as Listed).resources
}

async function play(replica: Replica, one: Step): Promise<void> {
  if (one.op === 'revert') {
    await replica.send('POST', `/api/config/history/${one.which + 1}/revert`, Buffer.from(''))
    return
  }
  const found = (await listed(replica, `/${one.kind}`))[one.which]
  const path = `/${one.kind}/${found?.id}`
  if (one.op === 'remove') await replica.call('DELETE', path)
  else if (found === undefined)
    await replica.call('PUT', `/${one.kind}`, { resources: [{ value: one.value }] })
  else await replica.call('PUT', path, { value: one.value })
}

async function readAll(replica: Replica): Promise<HistoryRecord[]> {
  const records: HistoryRecord[] = []
  for (let below: number | undefined; ; below = records.at(-1)?.id) {
    const page = await replica.resources.history({ below, limit: 3 })
    if (page.kind === 'refused') throw new Error(page.message)
    records.push(...page.records)
    if (page.isLast) return records.toReversed()
  }
}

/** The value without the id of a key; removed secrets are not compared. */
function comparable(value: JsonValue, isEncrypted: boolean): unknown {
  const copy = JSON.parse(JSON.stringify(value))
  if (copy.metadata !== undefined) delete copy.metadata.id
  if (copy.metadata !== undefined && Object.keys(copy.metadata).length === 0) delete copy.metadata
  if (!isEncrypted && copy.key !== undefined) copy.key = ''
  return copy
}

it.each([[true], [false]])(
  'the history replays to the state of the store, encrypted: %s',
  async (isEncrypted) => {
    let count = 0
    const property = fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      const clock = createSteppingClock()
      const path = join(folder, `${isEncrypted}-${++count}.db`)
      const store = createSqliteStore({
        path,
        secretPaths,
        clock,
        ...(isEncrypted ? { encryptionKey: '5a'.repeat(32) } : {}),
      })
      try {
        const replica = await startHybrid(store, clock)
        for (const one of steps) await play(replica, one)
        const replayed = new Map<string, { revision: number; value: unknown }>()
        for (const { op, kind, resourceId, revision, before, after } of await readAll(replica)) {
          const id = `${kind} ${resourceId}`
          const known = replayed.get(id)
          expect(op).toBe(after === undefined ? 'delete' : known === undefined ? 'create' : 'update')
          const was = before?.kind === 'value' ? comparable(before.value, isEncrypted) : undefined
          expect(was).toEqual(known?.value)
          if (after === undefined) replayed.delete(id)
          else if (after.kind === 'value')
            replayed.set(id, { revision, value: comparable(after.value, isEncrypted) })
        }
        const stored = (await listed(replica)).map(
          ({ kind, id, revision, value }) =>
            [`${kind} ${id}`, { revision, value: comparable(value, isEncrypted) }] as const,
        )
        expect(Object.fromEntries(replayed)).toEqual(Object.fromEntries(stored))
        await replica.resources.close()
      } finally {
        await store.close()
      }
    })
    await fc.assert(property, { numRuns: 10 })
  },
  60_000,
)
