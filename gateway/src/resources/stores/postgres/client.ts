import {
  Client,
  type ClientBase,
  Pool,
  type PoolConfig,
  type QueryArrayConfig,
  type QueryArrayResult,
} from 'pg'
import { messageOf } from '../../../lib/thrown.ts'
import { StoreUnavailable } from '../store.ts'

/** Runs statements on one connection. Values are always bound, never part of the text. */
export type Query = {
  (text: string, values?: readonly unknown[], timeoutMs?: number): Promise<Rows>
  /** Runs several statements in one round trip; the rows of each. The text contains no values of users. */
  all(text: string): Promise<readonly Rows[]>
}

type Rows = readonly (readonly unknown[])[]

export type PostgresPool = {
  /** Runs on a connection of the pool. What it has begun is rolled back when it rejects. */
  use<T>(run: (query: Query) => Promise<T>): Promise<T>
  /** All connections are at work: whoever asks for one has to wait. */
  isBusy(): boolean
  close(): Promise<void>
}

/** A connection held to be told things. */
export type PostgresListener = {
  query: Query
  /** Resolves when the connection is no more. */
  ended: Promise<void>
  close(): Promise<void>
}

const connectTimeoutMs = 5000
/** After which an answer is no longer waited for: longer than any limit that the server itself keeps. */
const queryTimeoutMs = 15_000

/** Limit of a statement during which others wait: a change, its commit, a poll. */
export const shortQueryTimeoutMs = 4000

/** Throws when the address cannot be understood. It is not repeated, because it holds a password. */
export function readPostgresUrl(url: string): PoolConfig {
  const config: PoolConfig = {
    connectionString: withPlainSslModes(url),
    application_name: 'tollgate',
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs,
    keepAlive: true,
  }
  try {
    if (!/^postgres(ql)?:\/\//.test(url)) throw new Error('another scheme')
    // Nothing is connected yet: this only reads the address, and the certificates it names.
    new Client(config)
  } catch (error) {
    const file = isRecord(error) && typeof error['path'] === 'string' ? `: ${reasonOf(error)}` : ''
    throw new Error(
      `config.database.url is not a Postgres address like postgres://user:password@host:5432/database${file}`,
    )
  }
  return config
}

/** `onBroken`: a connection was lost, or could not be made; `onOutage`: the database does not answer. */
export type PoolEvents = { onBroken(): void; onOutage(error: StoreUnavailable): void }

export function createPostgresPool(config: PoolConfig, max: number, events: PoolEvents): PostgresPool {
  const { onBroken, onOutage } = events
  const pool = new Pool({ ...config, max, idleTimeoutMillis: 30_000 })
  pool.on('error', onBroken)
  // A connection that breaks while nothing is asked of it says so here, and to the next query.
  pool.on('connect', (client) => client.on('error', onBroken))
  return {
    async use(run) {
      const client = await pool.connect().catch((cause: unknown) => {
        const error = unavailable(cause)
        onBroken()
        // A pool whose connections are all at work says nothing about the database.
        if (pool.totalCount < max) onOutage(error)
        throw error
      })
      try {
        const result = await run(queryOn(client))
        client.release()
        return result
      } catch (error) {
        const isUsable = !(error instanceof StoreUnavailable) && (await rollsBack(client))
        client.release(!isUsable)
        if (isConnectionLoss(error)) onBroken()
        if (error instanceof StoreUnavailable && isLate(error)) onOutage(error)
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
      // Several statements in one text, which have no values, answer with a list.
      const result: QueryArrayResult | QueryArrayResult[] = await client.query(config)
      const results = Array.isArray(result) ? result : [result]
      // A transaction that has failed answers a commit with a rollback, and calls that a success.
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

/** The SQLSTATE behind a refusal. */
export function sqlState(error: unknown): string | undefined {
  const cause = error instanceof StoreUnavailable ? error.cause : undefined
  return isRecord(cause) && typeof cause['code'] === 'string' ? cause['code'] : undefined
}

function unavailable(error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable) return error
  const code = isRecord(error) && typeof error['code'] === 'string' ? error['code'] : undefined
  const text = code === lockTimeout ? 'other writers have held the lock for too long' : reasonOf(error)
  // Not the error itself: its details may quote a row.
  const cause = Object.assign(new Error(text), code === undefined ? {} : { code })
  return new StoreUnavailable(`the Postgres database cannot be used: ${text}`, cause)
}

const lockTimeout = '55P03'

/** Errors of the server itself have a SQLSTATE of five characters; classes 08 and 57 mean that it goes away. */
function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof StoreUnavailable)) return false
  const code = sqlState(error)
  return code === undefined || code.length !== 5 || /^(08|57P)/.test(code)
}

/** The driver names its time limit in words only. */
function isLate({ cause }: StoreUnavailable): boolean {
  return cause instanceof Error && cause.message === 'Query read timeout'
}

/** Several addresses of one name fail with one error that says nothing itself. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return messageOf(error)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Modes of TLS mean what they mean to Postgres' own clients: `require` encrypts, `verify-full` checks the certificate too. */
function withPlainSslModes(url: string): string {
  const mode = /[?&]sslmode=([^&]*)/.exec(url)?.[1]
  const isOther = mode === undefined || mode === 'no-verify' || /[?&]uselibpqcompat=/.test(url)
  return isOther ? url : `${url}&uselibpqcompat=true`
}
