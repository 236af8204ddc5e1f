import {
  Client,
  type ClientBase,
  Pool,
  type PoolConfig,
  type QueryArrayConfig,
  type QueryArrayResult,
} from 'pg'
import { messageOf } from '../../lib/thrown.ts'
import { DatabaseUnavailable } from '../database-unavailable.ts'

/** Executes statements on one connection. Values are bound parameters, never part of the text. */
export type Query = {
  (text: string, values?: readonly unknown[], timeoutMs?: number): Promise<Rows>
  /**
   * Executes several statements in one round trip and returns the rows of each. The text contains no values
   * of users.
   */
  all(text: string): Promise<readonly Rows[]>
}

type Rows = readonly (readonly unknown[])[]

export type PostgresPool = {
  /** Calls `run` with a connection of the pool. Its transaction is rolled back if it rejects. */
  use<T>(run: (query: Query) => Promise<T>): Promise<T>
  /** Whether all connections are in use. */
  isBusy(): boolean
  close(): Promise<void>
}

/** A connection for notifications. */
export type PostgresListener = {
  query: Query
  /** Resolves when the connection has ended. */
  ended: Promise<void>
  close(): Promise<void>
}

const connectTimeoutMs = 5000
/** Client-side limit of a query: longer than every limit of the server. */
const queryTimeoutMs = 15_000

/** Limit of statements that block others: a change, its commit, a poll. */
export const shortQueryTimeoutMs = 4000

/**
 * Throws if the URL is not valid. The error names the field, and does not contain the URL, which has a
 * password.
 */
export function readPostgresUrl(url: string, field = 'config.database.url'): PoolConfig {
  const config: PoolConfig = {
    connectionString: withPlainSslModes(url),
    application_name: 'tollgate',
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs,
    keepAlive: true,
  }
  try {
    if (!/^postgres(ql)?:\/\//.test(url)) throw new Error('another scheme')
    // Does not connect: parses the URL and reads the certificates it names.
    new Client(config)
  } catch (error) {
    const file = isRecord(error) && typeof error['path'] === 'string' ? `: ${reasonOf(error)}` : ''
    throw new Error(
      `${field} is not a Postgres address like postgres://user:password@host:5432/database${file}`,
    )
  }
  return config
}

/** `onBroken`: a connection was lost or failed; `onOutage`: the database does not respond. */
export type PoolEvents = { onBroken(): void; onOutage(error: DatabaseUnavailable): void }

export function createPostgresPool(config: PoolConfig, max: number, events: PoolEvents): PostgresPool {
  const { onBroken, onOutage } = events
  const pool = new Pool({ ...config, max, idleTimeoutMillis: 30_000 })
  pool.on('error', onBroken)
  // An idle connection that breaks emits an error; the next query fails as well.
  pool.on('connect', (client) => client.on('error', onBroken))
  return {
    async use(run) {
      const client = await pool.connect().catch((cause: unknown) => {
        const error = unavailable(cause)
        onBroken()
        // If all connections are in use, the failure does not imply an outage.
        if (pool.totalCount < max) onOutage(error)
        throw error
      })
      try {
        const result = await run(queryOn(client))
        client.release()
        return result
      } catch (error) {
        const isUsable = !(error instanceof DatabaseUnavailable) && (await rollsBack(client))
        client.release(!isUsable)
        if (isConnectionLoss(error)) onBroken()
        if (error instanceof DatabaseUnavailable && isLate(error)) onOutage(error)
        throw error
      }
    },
    isBusy: () => pool.idleCount === 0 && pool.totalCount >= max,
    close: () => pool.end(),
  }
}

async function rollsBack(client: ClientBase): Promise<boolean> {
  try {
    await queryOn(client)('rollback', undefined, shortQueryTimeoutMs)
    return true
  } catch {
    return false
  }
}

export async function connectListener(
  config: PoolConfig,
  onNotification: (payload: string) => void,
): Promise<PostgresListener> {
  const client = new Client({ ...config, application_name: 'tollgate (notifications)' })
  const ended = new Promise<void>((resolve) => {
    client.on('end', resolve)
    client.on('error', () => resolve())
  })
  client.on('notification', ({ payload }) => onNotification(payload ?? ''))
  try {
    await client.connect()
  } catch (error) {
    client.end().catch(() => undefined)
    throw unavailable(error)
  }
  return { query: queryOn(client), ended, close: () => client.end().catch(() => undefined) }
}

function queryOn(client: ClientBase): Query {
  const run = async (
    text: string,
    values?: readonly unknown[],
    timeoutMs = queryTimeoutMs,
  ): Promise<readonly Rows[]> => {
    try {
      const config: QueryArrayConfig & { query_timeout: number } = {
        text,
        rowMode: 'array',
        query_timeout: timeoutMs,
        ...(values === undefined ? {} : { values: [...values] }),
      }
      // Several statements in one text return a list of results.
      const result: QueryArrayResult | QueryArrayResult[] = await client.query(config)
      const results = Array.isArray(result) ? result : [result]
      // Postgres reports success for the commit of a failed transaction, which it rolls back.
      if (text === 'commit' && results[0]?.command !== 'COMMIT')
        throw new Error('the transaction was rolled back')
      return results.map(({ rows }) => rows)
    } catch (error) {
      throw unavailable(error)
    }
  }
  const single = async (text: string, values?: readonly unknown[], timeoutMs?: number) =>
    (await run(text, values, timeoutMs))[0] ?? []
  return Object.assign(single, { all: (text: string) => run(text) })
}

/** SQLSTATE of an error. */
export function sqlState(error: unknown): string | undefined {
  const cause = error instanceof DatabaseUnavailable ? error.cause : undefined
  return isRecord(cause) && typeof cause['code'] === 'string' ? cause['code'] : undefined
}

function unavailable(error: unknown): DatabaseUnavailable {
  if (error instanceof DatabaseUnavailable) return error
  const code = isRecord(error) && typeof error['code'] === 'string' ? error['code'] : undefined
  const text = code === lockTimeout ? 'other writers had the lock for too long' : reasonOf(error)
  // Not the original error, whose details may quote a row.
  const cause = Object.assign(new Error(text), code === undefined ? {} : { code })
  return new DatabaseUnavailable(`the Postgres database cannot be used: ${text}`, cause)
}

const lockTimeout = '55P03'

/** Errors of the server have a SQLSTATE of five characters; classes 08 and 57P mean a closed connection. */
function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof DatabaseUnavailable)) return false
  const code = sqlState(error)
  return code === undefined || code.length !== 5 || /^(08|57P)/.test(code)
}

/** The driver has no error code for its time limit. */
function isLate({ cause }: DatabaseUnavailable): boolean {
  return cause instanceof Error && cause.message === 'Query read timeout'
}

/** Several addresses of one host name fail with one error that has no message. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return messageOf(error)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Selects the TLS modes of libpq: `require` encrypts, `verify-full` also verifies the certificate. */
function withPlainSslModes(url: string): string {
  const mode = /[?&]sslmode=([^&]*)/.exec(url)?.[1]
  const isOther = mode === undefined || mode === 'no-verify' || /[?&]uselibpqcompat=/.test(url)
  return isOther ? url : `${url}&uselibpqcompat=true`
}
