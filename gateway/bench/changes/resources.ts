import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/lib/clock.ts'
import { secretPaths } from '../../src/resources/secrets/secret-paths.ts'
import { createPostgresStore } from '../../src/resources/stores/postgres/postgres.ts'
import { createSqliteStore } from '../../src/resources/stores/sqlite/sqlite.ts'
import type { ResourceStore } from '../../src/resources/stores/store.ts'
import { freePort } from '../../test/support/free-port.ts'
import { stopAll, track } from '../subjects/processes.ts'

// Cost of config resources: writes with many keys, traffic during writes, propagation, start and memory.
// node gateway/bench/changes/resources.ts [--keys 10,1000,100000] [--writes 200] [--postgres postgres://…]

const { values: options } = parseArgs({
  options: {
    keys: { type: 'string', default: '10,1000,100000' },
    writes: { type: 'string', default: '200' },
    /** An empty database to use in place of SQLite; with one number of keys. */
    postgres: { type: 'string' },
  },
})
const writes = Number(options.writes)

type Database = { name: string; url: string; open(): ResourceStore }
type Gateway = { port: number; admin: number; pid: number; readyMs: number; end(): Promise<void> }

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-resources-'))
  try {
    for (const count of options.keys.split(',').map(Number))
      await measure(folder, count, databaseFor(folder, count))
  } finally {
    await stopAll()
    rmSync(folder, { recursive: true })
  }
}

function databaseFor(folder: string, count: number): Database {
  const { postgres: url } = options
  if (url !== undefined) {
    return {
      name: 'postgres',
      url,
      open: () => createPostgresStore({ url, secretPaths, clock: systemClock }),
    }
  }
  const path = join(folder, `${count}.db`)
  return {
    name: 'sqlite',
    url: `sqlite://${path}`,
    open: () => createSqliteStore({ path, secretPaths, clock: systemClock }),
  }
}

async function measure(folder: string, count: number, database: Database): Promise<void> {
  await fill(database, count)
  const one = await start(folder, database)
  const other = await start(folder, database)
  const resident = residentBytes(one.pid)
  const idle = await traffic(one.port, 3_000)
  const during = traffic(one.port, Math.max(3_000, writes * 15))
  const latencies: number[] = []
  const propagations: number[] = []
  for (let index = 0; index < writes; index++) {
    const key = `bench-${randomUUID()}`
    const startedAt = performance.now()
    await createKey(one.admin, key)
    latencies.push(performance.now() - startedAt)
    if (index % 10 === 0) propagations.push(await untilKnown(other.port, key, performance.now()))
    await delay(5)
  }
  const busy = await during
  await Promise.all([one.end(), other.end()])
  process.stdout.write(
    `${[
      `${database.name}, ${count} keys:`,
      `start ${one.readyMs.toFixed(0)} ms, RSS ${(resident / 2 ** 20).toFixed(0)} MiB;`,
      `write ms p50 ${quantile(latencies, 0.5)} p99 ${quantile(latencies, 0.99)};`,
      `traffic ms p99 idle ${quantile(idle, 0.99)}, during writes ${quantile(busy, 0.99)};`,
      `propagation ms p50 ${quantile(propagations, 0.5)} p99 ${quantile(propagations, 0.99)}`,
    ].join(' ')}\n`,
  )
}

async function fill({ open }: Database, count: number): Promise<void> {
  const store = open()
  const { generation } = await store.read(undefined)
  await store.write(generation, async () =>
    Array.from({ length: count }, (_, index) => {
      const id = randomUUID()
      const value = {
        key: `key-${index}`,
        metadata: { name: `user ${index}`, group: `team ${index % 50}`, id },
      }
      return { op: 'put' as const, kind: 'llm.apiKey', id, value }
    }),
  )
  await store.close()
}

async function start(folder: string, { url }: Database): Promise<Gateway> {
  const [port, admin, stats, readiness] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ]
  const file = join(folder, `${port}.yaml`)
  const config = {
    config: {
      bindAddress: '127.0.0.1',
      adminAddr: `127.0.0.1:${admin}`,
      statsAddr: `127.0.0.1:${stats}`,
      readinessAddr: `127.0.0.1:${readiness}`,
      storage: { mode: 'hybrid' },
      database: { url },
    },
    llm: {
      port,
      models: [{ name: '*', provider: 'echo' }],
      policies: { apiKey: { keys: [{ key: 'bench' }] } },
    },
  }
  writeFileSync(file, JSON.stringify(config))
  const startedAt = performance.now()
  const log = openSync(join(folder, `${port}.log`), 'a')
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const child = track(spawn(process.execPath, [main, '-f', file], { stdio: ['ignore', log, 'inherit'] }))
  while (!(await isReady(readiness))) await delay(10)
  const readyMs = performance.now() - startedAt
  return {
    port,
    admin,
    pid: child.pid ?? 0,
    readyMs,
    end: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.kill('SIGTERM')
      }),
  }
}

const agent = new Agent({ keepAlive: true })

function call(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string>,
  body = '',
): Promise<number> {
  return new Promise((resolve, reject) => {
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    const outgoing = httpRequest(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        agent,
        headers: { 'content-type': 'application/json', ...length, ...headers },
      },
      (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

const completion = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hi' }] })

function ask(port: number, key: string): Promise<number> {
  return call(port, 'POST', '/v1/chat/completions', { authorization: `Bearer ${key}` }, completion)
}

async function isReady(port: number): Promise<boolean> {
  return (await call(port, 'GET', '/healthz/ready', {}).catch(() => 0)) === 200
}

async function createKey(port: number, key: string): Promise<void> {
  const body = JSON.stringify({ resources: [{ value: { key, metadata: { name: 'bench' } } }] })
  const status = await call(port, 'PUT', '/api/config/resources/llm.apiKey', {}, body)
  if (status !== 200) throw new Error(`a key could not be created: ${status}`)
}

async function untilKnown(port: number, key: string, since: number): Promise<number> {
  while ((await ask(port, key)) !== 200) await delay(2)
  return performance.now() - since
}

/** Latencies of requests sent every 3 ms, independent of earlier responses. */
async function traffic(port: number, forMs: number): Promise<number[]> {
  const latencies: number[] = []
  const pending: Promise<void>[] = []
  const endAt = performance.now() + forMs
  while (performance.now() < endAt) {
    const sentAt = performance.now()
    pending.push(ask(port, 'bench').then(() => void latencies.push(performance.now() - sentAt)))
    await delay(3)
  }
  await Promise.all(pending)
  return latencies
}

function quantile(values: readonly number[], share: number): string {
  const sorted = values.toSorted((one, other) => one - other)
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(1)
}

function residentBytes(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
  return pages * 4096
}

await main()
