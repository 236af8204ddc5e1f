import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  connectListener,
  type PostgresListener,
  type PostgresPool,
  type Query,
  type readPostgresUrl,
  shortQueryTimeoutMs,
} from '../../../database/postgres/client.ts'
import { asError } from '../../../lib/thrown.ts'
import type { DriverEvents } from '../row-driver.ts'
import { channel } from './commit.ts'

export type WatchSettings = {
  pool: PostgresPool
  pollMs: number
  warn: (message: string) => void
  events: DriverEvents
  closing: AbortSignal
}

/** Detects changes without a notification, and the start and end of an outage. */
export async function poll(
  { pool, pollMs, events, closing }: WatchSettings,
  prepare: () => Promise<void>,
): Promise<void> {
  while (!closing.aborted) {
    // If all connections are in use, the database responds, and a poll would have to wait.
    if (!pool.isBusy()) {
      try {
        await prepare()
        await pool.use((query) => announce(query, events))
      } catch (error) {
        if (!closing.aborted) events.unavailable(asError(error))
      }
    }
    await pause(pollMs, closing)
  }
}

const firstRetryMs = 100
const longestRetryMs = 10_000
/** Behind a pooler, notifications rarely start to work. */
const silentRetryMs = 60_000
/** Interval of test notifications on the listening connection. */
const trialMs = 30_000
const trialWaitMs = 2000
const busyMs = 100

/** Listens for notifications on one connection until the store is closed. */
export async function listen(
  config: ReturnType<typeof readPostgresUrl>,
  settings: WatchSettings,
): Promise<void> {
  const { closing, warn } = settings
  let retryMs = firstRetryMs
  let hasWarned = false
  while (!closing.aborted) {
    const end = await listenOnce(config, settings)
    if (closing.aborted) return
    if (end === 'lost') retryMs = firstRetryMs
    if (end === 'silent') {
      if (!hasWarned) warn(silence)
      hasWarned = true
      await pause(silentRetryMs, closing)
      continue
    }
    // Random, so that replicas do not reconnect simultaneously after an outage.
    await pause(retryMs * (0.5 + Math.random()), closing)
    retryMs = Math.min(longestRetryMs, retryMs * 2)
  }
}

const silence =
  'Postgres delivers no notifications on this connection (is a connection pooler in between?): changes are polled'

/**
 * Listens on one connection until its end: it failed, it was lost, or it delivers no notifications.
 * Connection poolers accept LISTEN without delivering notifications, so the connection is tested.
 */
async function listenOnce(
  config: ReturnType<typeof readPostgresUrl>,
  { pool, events, closing }: WatchSettings,
): Promise<'unreachable' | 'lost' | 'silent'> {
  const ownTrial = `trial ${randomUUID()}`
  let heard = Promise.withResolvers<'heard'>()
  let listener: PostgresListener | undefined
  let hasHeard = false
  try {
    listener = await connectListener(config, (payload) => {
      if (payload === ownTrial) heard.resolve('heard')
      if (/^[0-9]{1,15}$/.test(payload)) events.generation(Number(payload))
    })
    const ended = Promise.race([listener.ended, aborted(closing)]).then(() => 'ended' as const)
    await listener.query(`listen ${channel}`)
    for (;;) {
      // Waiting for a connection in use must not count as a missing notification.
      while (pool.isBusy() && !closing.aborted) await pause(busyMs, closing)
      await pool.use((query) => query('select pg_notify($1, $2)', [channel, ownTrial]))
      const outcome = await Promise.race([heard.promise, ended, pause(trialWaitMs, closing)])
      if (outcome === undefined && !hasHeard) return 'silent'
      if (outcome !== 'heard') break
      // Commits before the connection listened were not announced.
      if (!hasHeard) await announce(listener.query, events)
      hasHeard = true
      heard = Promise.withResolvers<'heard'>()
      if ((await Promise.race([ended, pause(trialMs, closing)])) === 'ended') break
    }
  } catch {
    // The poll fails as well and reports the error.
  } finally {
    await listener?.close()
  }
  if (!hasHeard) return 'unreachable'
  events.replaced()
  return 'lost'
}

async function announce(query: Query, events: DriverEvents): Promise<void> {
  const [state] = await query('select generation from tollgate_state', undefined, shortQueryTimeoutMs)
  events.generation(Number(state?.[0]))
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Ends early, without an error, if the store is closed. */
async function pause(ms: number, closing: AbortSignal): Promise<undefined> {
  await delay(ms, undefined, { signal: closing }).catch(() => undefined)
  return undefined
}
