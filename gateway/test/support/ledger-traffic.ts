import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import type { Gateway, GatewayConfig } from './gateway.ts'
import { chat, llmConfig } from './llm-config.ts'

/** Rows of a ledger: ids, and the number of requests in the hourly sums. */
export type LedgerCounts = { ids: Set<string>; rows: number; sums: number }

/** A gateway with the model `echo`, and the settings of a ledger. */
export function ledgerConfig(database: Record<string, unknown>): GatewayConfig {
  return { ...llmConfig({}), config: { logging: { database } } }
}

/** Counts of a ledger in a SQLite file or in Postgres; empty if it has no tables yet. */
export async function ledgerCounts(url: string): Promise<LedgerCounts> {
  const rows = await queryLedger(url, 'select id from tollgate_requests')
  const [[sum] = []] = await queryLedger(url, 'select sum(requests) from tollgate_usage_hours')
  return { ids: new Set(rows.map(([id]) => String(id))), rows: rows.length, sums: Number(sum ?? 0) }
}

async function queryLedger(url: string, text: string): Promise<readonly (readonly unknown[])[]> {
  return url.startsWith('sqlite')
    ? querySqlite(url.slice('sqlite://'.length), text)
    : await queryPostgres(url, text)
}

function querySqlite(path: string, text: string): (readonly unknown[])[] {
  if (!existsSync(path)) return []
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  try {
    return db
      .prepare(text)
      .all()
      .map((row) => Object.values(row))
  } catch (error) {
    if (String(error).includes('no such table')) return []
    throw error
  } finally {
    db.close()
  }
}

async function queryPostgres(url: string, text: string): Promise<(readonly unknown[])[]> {
  const client = new Client(url)
  await client.connect()
  try {
    const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' })
    return rows
  } catch (error) {
    if (String(error).includes('does not exist')) return []
    throw error
  } finally {
    await client.end()
  }
}

/** Requests that a gateway answered: their ids, by the time of the answer. */
export type Traffic = {
  readonly answered: { id: string; at: number }[]
  /** Requests without an answer, because the gateway ended. */
  failed(): number
  stop(): Promise<void>
}

/** Sends requests one after another, on several connections, until it is stopped. */
export function startTraffic(gateway: Gateway, clients = 4): Traffic {
  const answered: Traffic['answered'] = []
  let failed = 0
  let isOpen = true
  const run = async () => {
    while (isOpen) {
      try {
        const id = await answeredId(gateway)
        answered.push({ id, at: performance.now() })
      } catch {
        failed += 1
        return
      }
    }
  }
  const running = Array.from({ length: clients }, run)
  return {
    answered,
    failed: () => failed,
    async stop() {
      isOpen = false
      await Promise.all(running)
    },
  }
}

/** Sends a request; its id. Rejects unless the answer is complete. */
export async function answeredId(gateway: Gateway): Promise<string> {
  const response = await chat(gateway)
  await response.arrayBuffer()
  if (response.status !== 200) throw new Error(`status ${response.status}`)
  return response.headers.get('x-request-id') ?? ''
}

/** State of the ledger in the admin API. */
export async function ledgerStatus(gateway: Gateway): Promise<Record<string, unknown>> {
  const status: object = await gateway.status()
  return 'ledger' in status && typeof status.ledger === 'object' ? { ...status.ledger } : {}
}
