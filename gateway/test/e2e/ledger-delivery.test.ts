import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { startGateway } from '../support/gateway.ts'
import {
  answeredId,
  type LedgerCounts,
  ledgerConfig,
  ledgerCounts,
  ledgerStatus,
  startTraffic,
} from '../support/ledger-traffic.ts'
import { aliceKey, chat } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { until } from '../support/wait.ts'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-ledger-'))
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Waits until the ledger has all ids, and returns its counts. */
function complete(url: string, ids: readonly string[], limitMs = 30_000): Promise<LedgerCounts> {
  return until(
    `${ids.length} rows in the ledger`,
    async () => {
      const counts = await ledgerCounts(url)
      return ids.every((id) => counts.ids.has(id)) && counts
    },
    limitMs,
  )
}

/** Each entry is one row, and counts once in the sums. */
function expectOnce({ ids, rows, sums }: LedgerCounts): void {
  expect(rows).toBe(ids.size)
  expect(sums).toBe(rows)
}

describe('the ledger in SQLite', () => {
  it('has the last requests after a graceful end, and no spool files', async () => {
    const folder = newFolder()
    const url = `sqlite://${join(folder, 'ledger.db')}`
    const gateway = await startGateway(ledgerConfig({ url }))
    const ids = await Promise.all(Array.from({ length: 20 }, () => answeredId(gateway)))
    await gateway.stop()
    const counts = await ledgerCounts(url)
    expect([...counts.ids].sort()).toEqual(ids.sort())
    expectOnce(counts)
    expect(readdirSync(join(folder, 'ledger.db.spool'))).toEqual([])
  })

  it('has the requests of several data planes', async () => {
    const url = `sqlite://${join(newFolder(), 'ledger.db')}`
    const config = ledgerConfig({ url })
    const gateway = await startGateway({ ...config, config: { ...config.config, workerThreads: 2 } })
    const ids = await Promise.all(Array.from({ length: 40 }, () => answeredId(gateway)))
    await gateway.stop()
    const counts = await ledgerCounts(url)
    expect([...counts.ids].sort()).toEqual(ids.sort())
    expectOnce(counts)
  })

  it('loses at most the last second of a killed process, and counts nothing twice', async () => {
    const url = `sqlite://${join(newFolder(), 'ledger.db')}`
    const config = ledgerConfig({ url })
    let gateway = await startGateway(config, { mayCrash: true })
    const safe: string[] = []
    for (let round = 0; round < 3; round += 1) {
      const traffic = startTraffic(gateway)
      await delay(1_500 + 130 * round)
      const killedAt = performance.now()
      gateway.child.kill('SIGKILL')
      await gateway.exited
      await traffic.stop()
      safe.push(...traffic.answered.filter(({ at }) => at < killedAt - 1_000).map(({ id }) => id))
      gateway = await startGateway(config, { mayCrash: true, again: gateway })
    }
    expect(safe.length).toBeGreaterThan(50)
    const counts = await complete(url, safe)
    expectOnce(counts)
    await gateway.stop()
    expectOnce(await ledgerCounts(url))
  })

  it('does not delay traffic while another process has the lock, and loses nothing', async () => {
    const path = join(newFolder(), 'ledger.db')
    const url = `sqlite://${path}`
    const gateway = await startGateway(ledgerConfig({ url }))
    await complete(url, [await answeredId(gateway)])
    const other = new DatabaseSync(path)
    other.exec('begin immediate')
    const ids: string[] = []
    for (let index = 0; index < 50; index += 1) ids.push(await answeredId(gateway))
    await until('the outage is reported', async () => (await ledgerStatus(gateway))['connected'] === false)
    expect(metricValue(await gateway.metrics(), 'tollgate_ledger_database_connected')).toBe(0)
    expect(metricValue(await gateway.metrics(), 'tollgate_ledger_queue_rows')).toBe(50)
    other.exec('rollback')
    other.close()
    const counts = await complete(url, ids)
    expectOnce(counts)
    await until(
      'the end of the outage is reported',
      async () => (await ledgerStatus(gateway))['connected'] === true,
    )
    expect(gateway.stdout()).toContain('ledger database unavailable, entries are spooled')
    expect(gateway.stdout()).toContain('ledger database available again')
  })

  it('has the entries of a process that started and ended without the database', async () => {
    const folder = newFolder()
    const place = join(folder, 'place')
    writeFileSync(place, 'not a folder yet')
    const url = `sqlite://${join(place, 'ledger.db')}`
    const config = ledgerConfig({ url, spool: join(folder, 'spool') })
    const first = await startGateway(config)
    const ids = await Promise.all(Array.from({ length: 10 }, () => answeredId(first)))
    await first.stop()
    rmSync(place)
    mkdirSync(place)
    const second = await startGateway(config, { again: first })
    ids.push(await answeredId(second))
    expectOnce(await complete(url, ids))
  })

  it('has the entries of two processes, and of the one that is killed', async () => {
    const path = join(newFolder(), 'ledger.db')
    const url = `sqlite://${path}`
    const one = await startGateway(ledgerConfig({ url }), { mayCrash: true })
    const two = await startGateway(ledgerConfig({ url }))
    const traffic = [startTraffic(one, 2), startTraffic(two, 2)]
    await delay(1_000)
    const other = new DatabaseSync(path, { timeout: 10_000 })
    other.exec('begin immediate')
    await delay(1_000)
    await Promise.all(traffic.map(({ stop }) => stop()))
    // In the spool of the first process, which the second one writes.
    await delay(1_000)
    one.child.kill('SIGKILL')
    await one.exited
    other.exec('rollback')
    other.close()
    expectOnce(
      await complete(
        url,
        traffic.flatMap(({ answered }) => answered.map(({ id }) => id)),
      ),
    )
    await until('the spool is empty', async () => (await ledgerStatus(two))['queuedRows'] === 0)
  })

  it('has no credentials and no contents in its file and its spool', async () => {
    const path = join(newFolder(), 'ledger.db')
    const gateway = await startGateway(ledgerConfig({ url: `sqlite://${path}` }))
    await complete(`sqlite://${path}`, [await answeredId(gateway)])
    const other = new DatabaseSync(path)
    const send = () =>
      chat(
        gateway,
        { messages: [{ role: 'user', content: 'canary-of-prompt' }] },
        {
          headers: { 'x-secret': 'canary-of-header', cookie: 'id=canary-of-cookie' },
          path: '/v1/chat/completions?token=canary-of-query',
        },
      )
    const refused = () => chat(gateway, {}, { headers: { authorization: 'Bearer canary-of-wrong-key' } })
    const statuses = [(await send()).status, (await refused()).status]
    expect(statuses).toEqual([200, 401])
    other.exec('begin immediate')
    await Promise.all([send(), refused()])
    const spool = `${path}.spool`
    const spooled = await until('two entries in the spool', () => {
      const texts = readdirSync(spool).map((name) => readFileSync(join(spool, name), 'latin1'))
      return texts.join('').split('chat/completions').length > 2 && texts.join('')
    })
    const stored = [path, `${path}-wal`].map((file) => readFileSync(file, 'latin1')).join('')
    expect(stored).toContain('chat/completions')
    for (const text of [spooled, stored]) {
      expect(text).not.toContain('canary')
      expect(text).not.toContain(aliceKey)
    }
    other.exec('rollback')
    other.close()
  })

  it('refuses an address that is not valid at start', async () => {
    const gateway = startGateway(ledgerConfig({ url: 'postgres://[' }), { mayCrash: true })
    await expect(gateway).rejects.toThrow('config.logging.database.url')
  })
})

describe.skipIf(postgresMissing !== undefined)('the ledger in Postgres', () => {
  let postgres: TestPostgres

  beforeAll(async () => {
    postgres = await startPostgres()
  })

  it('has all entries after the database was absent at start, slow and away, and traffic is not delayed', async () => {
    const direct = await postgres.createDatabase()
    const proxy = await startPostgresProxy(postgres.port)
    proxy.hangs = true
    const gateway = await startGateway(ledgerConfig({ url: proxy.through(direct), spool: newFolder() }))
    const ids: string[] = []
    const send = async (count: number) => {
      for (let index = 0; index < count; index += 1) ids.push(await answeredId(gateway))
    }
    await send(20)
    proxy.hangs = false
    proxy.cut()
    await complete(direct, ids)

    proxy.delayMs = 500
    await send(50)
    proxy.cut()
    await send(50)
    proxy.delayMs = 0
    await postgres.stop()
    await send(20)
    await postgres.start()
    const counts = await complete(direct, ids, 60_000)
    expectOnce(counts)
    expect(counts.rows).toBe(140)
  }, 120_000)

  it('has all entries of an outage with a full disk', async () => {
    const direct = await postgres.createDatabase()
    const proxy = await startPostgresProxy(postgres.port)
    proxy.hangs = true
    const database = { url: proxy.through(direct), spool: newFolder() }
    // Files of at most some 10 kB: some ten entries.
    const gateway = await startGateway(ledgerConfig(database), { maxFileBlocks: 16 })
    const ids: string[] = []
    for (let index = 0; index < 100; index += 1) ids.push(await answeredId(gateway))
    await until('the spool is full', async () => {
      ids.push(await answeredId(gateway))
      return (await ledgerStatus(gateway))['spoolError'] !== undefined
    })
    expect(gateway.stdout()).toContain('ledger spool not writable, entries are in memory only')
    proxy.hangs = false
    proxy.cut()
    expectOnce(await complete(direct, ids, 60_000))
  }, 120_000)
})
