import { randomUUID } from 'node:crypto'
import { formatChecks } from '../config/formats.ts'
import { formatIssue, loadConfigText } from '../config/load.ts'
import { ConfigRejected, type PreparedConfig } from '../config/running.ts'
import { type Config, checkConfig, configJsonSchema, configSchema } from '../config/schema.ts'
import { share } from '../config/structural-share.ts'
import { createBreathe } from '../lib/breathe.ts'
import type { Clock } from '../lib/clock.ts'
import { createTurns } from '../lib/turns.ts'
import type { Log } from '../pipeline/log.ts'
import { createConfigApi } from './api.ts'
import { createExpand } from './expand.ts'
import { editFile } from './file-edit.ts'
import { createFileResources } from './file-mode.ts'
import { createHybridResources } from './hybrid.ts'
import type { Resources } from './resources.ts'
import type { Allowances } from './restrictions.ts'
import {
  type ResourceStore,
  type StoreChange,
  type StoreDelta,
  type StoredResource,
  StoreUnavailable,
} from './store.ts'

/** A database in memory, as several replicas see it. */
export type MemoryDatabase = {
  open(): ResourceStore
  rows(): readonly StoredResource[]
  /** Commits past everybody who checks. */
  put(row: Pick<StoredResource, 'kind' | 'id' | 'value'>): void
  remove(kind: string, id: string): void
  /** Calls fail until it is false again. */
  isAway: boolean
  /** Writers wait for it before they have the lock of all writers. */
  lockWait: Promise<void> | undefined
  /** Readers wait for it with what they have read. */
  answerWait: Promise<void> | undefined
  /** Nobody is told of changes until it is false again. */
  isSilent: boolean
}

type Row = StoredResource & { readonly generation: number }

export function createMemoryDatabase(clock: Clock): MemoryDatabase {
  const rows = new Map<string, Row>()
  const removals: { kind: string; id: string; generation: number }[] = []
  const revisions = new Map<string, number>()
  const watchers = new Set<() => void>()
  let generation = 0
  let writers: Promise<unknown> = Promise.resolve()
  const keyOf = ({ kind, id }: { kind: string; id: string }) => JSON.stringify([kind, id])

  const commit = (changes: readonly StoreChange[]) => {
    generation += 1
    for (const change of changes) {
      const key = keyOf(change)
      const before = rows.get(key)
      if (change.op === 'remove') {
        if (rows.delete(key)) removals.push({ kind: change.kind, id: change.id, generation })
        continue
      }
      const now = new Date(clock.now()).toISOString()
      const { kind, id, value } = change
      const revision = (revisions.get(key) ?? 0) + 1
      revisions.set(key, revision)
      rows.set(key, {
        kind,
        id,
        value,
        revision,
        createdAt: before?.createdAt ?? now,
        updatedAt: now,
        generation,
      })
    }
    if (!database.isSilent) for (const watcher of watchers) queueMicrotask(watcher)
  }

  const deltaSince = (since: number | undefined): StoreDelta => {
    const complete = since === undefined || since < 0
    const later = <T extends { generation: number }>(items: Iterable<T>) =>
      [...items].filter((item) => complete || item.generation > (since ?? 0))
    return {
      changed: later(rows.values()).map(({ generation: _, ...row }) => row),
      unreadable: [],
      removed: complete ? [] : later(removals).filter((removal) => !rows.has(keyOf(removal))),
      generation,
      complete,
    }
  }

  const assertThere = () => {
    if (database.isAway) throw new StoreUnavailable('the database is away', undefined)
  }

  const database: MemoryDatabase = {
    isAway: false,
    isSilent: false,
    lockWait: undefined,
    answerWait: undefined,
    rows: () => [...rows.values()],
    put: (row) => commit([{ op: 'put', ...row }]),
    remove: (kind, id) => commit([{ op: 'remove', kind, id }]),
    open: () => ({
      async read(since) {
        assertThere()
        const delta = deltaSince(since)
        await database.answerWait
        return delta
      },
      write(known, plan) {
        const done = writers.then(async () => {
          await database.lockWait
          assertThere()
          const changes = await plan(deltaSince(known))
          assertThere()
          if (changes !== undefined && changes.length > 0) commit(changes)
          return deltaSince(known)
        })
        writers = done.catch(() => undefined)
        return done
      },
      watch({ onChange }) {
        watchers.add(onChange)
      },
      close: () => Promise.resolve(),
    }),
  }
  return database
}

/** A clock that moves a millisecond whenever it is looked at, so that no two changes are of the same time. */
export function createSteppingClock(): Clock {
  let now = Date.UTC(2026, 0, 1)
  return {
    now: () => {
      now += 1
      return now
    },
    monotonic: () => performance.now(),
  }
}

/** A host that runs nothing, and remembers what would run. */
export type FixtureHost = {
  /** Every configuration that was committed, the last one is what runs. */
  readonly committed: Config[]
  readonly aborted: Config[]
  /** The last report; undefined once something was committed. */
  reported: string | undefined
  /** Awaited by `prepare`. */
  prepareWait: Promise<void> | undefined
  /** Thrown by the next `prepare`. */
  failure: Error | undefined
  prepare(config: Config): Promise<PreparedConfig>
  markApi(value: unknown): void
  report(lastError: string): void
  /** The outage of the database that was reported last. */
  outage: string | undefined
  reportDatabase(lastError: string | undefined): void
  exclusive<T>(change: () => Promise<T>): Promise<T>
}

function createFixtureHost(): FixtureHost {
  let last: Promise<unknown> = Promise.resolve()
  const host: FixtureHost = {
    committed: [],
    aborted: [],
    reported: undefined,
    prepareWait: undefined,
    failure: undefined,
    async prepare(config) {
      await host.prepareWait
      const { failure } = host
      host.failure = undefined
      if (failure) throw failure
      return {
        commit() {
          host.committed.push(config)
          host.reported = undefined
        },
        abort() {
          host.aborted.push(config)
        },
      }
    },
    markApi() {},
    report(lastError) {
      host.reported = lastError
    },
    outage: undefined,
    reportDatabase(lastError) {
      host.outage = lastError
    },
    exclusive(change) {
      const done = last.then(change, change)
      last = done.catch(() => undefined)
      return done
    },
  }
  return host
}

/** Loads a text as the configuration file is loaded. */
export function loadFixture(text: string, env: Record<string, string> = {}): Config {
  const loaded = loadConfigText({
    text,
    file: 'tollgate.yaml',
    env,
    schema: configSchema,
    checks: [checkConfig],
    formats: formatChecks,
  })
  if (loaded.kind === 'issues') throw new ConfigRejected(loaded.issues.map(formatIssue))
  return loaded.config
}

export type LogLine = { level: string; fields: object; message: string }

export function createFixtureLog(): Log & { lines: LogLine[] } {
  const lines: LogLine[] = []
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields, message })
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** The gateway as the API sees it. */
export type Replica = {
  readonly resources: Resources
  readonly host: FixtureHost
  readonly log: ReturnType<typeof createFixtureLog>
  /** What runs. */
  running(): Config
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** The same with a body as bytes. */
  send(method: string, path: string, body: Uint8Array, headers?: Record<string, string>): Promise<Answer>
}

export type Answer = { status: number; body: unknown; headers: Record<string, string | string[]> }

export type ReplicaOptions = {
  allowances?: Allowances
  allowedEnv?: readonly string[]
  env?: Record<string, string>
  randomUuid?: () => string
}

export const defaultConfig = `
llm:
  models:
    - name: from-file
      provider: echo
  policies:
    apiKey:
      mode: strict
      keys: []
`

/** A replica in hybrid mode; resolves once it has started. */
export async function startHybrid(
  store: ResourceStore,
  clock: Clock,
  config = defaultConfig,
  options: ReplicaOptions = {},
): Promise<Replica> {
  const host = createFixtureHost()
  const log = createFixtureLog()
  const resources = createHybridResources({
    store,
    host,
    expand: createExpand(options.allowedEnv ?? [], options.env ?? {}),
    randomUuid: options.randomUuid ?? randomUUID,
    clock,
    log,
    retryDelayMs: () => 5,
  })
  await resources.useFile(loadFixture(config, options.env))
  return replica(resources, host, log, options)
}

/** A file in memory and the replica that changes it. */
export async function startFileMode(
  config = defaultConfig,
  options: ReplicaOptions & { mode?: 'file' | 'readOnly' } = {},
): Promise<Replica & { file: { text: string; beforeWrite: (() => void) | undefined } }> {
  const host = createFixtureHost()
  const log = createFixtureLog()
  const file = { text: config, beforeWrite: undefined as (() => void) | undefined }
  const env = options.env ?? {}
  let current = loadFixture(config, env)
  const resources = createFileResources({
    mode: options.mode ?? 'file',
    host,
    log,
    randomUuid: options.randomUuid ?? randomUUID,
    file: {
      read: () => Promise.resolve(file.text),
      edit: async (request) => editFile({ ...request, env, allowedEnv: options.allowedEnv ?? [] }),
      load: async (text) => share(current, loadFixture(text, env)),
      async write(text, expected) {
        file.beforeWrite?.()
        if (file.text !== expected) return { kind: 'changed' }
        file.text = text
        return { kind: 'written' }
      },
      written(_text, loaded) {
        current = loaded
      },
    },
  })
  await resources.useFile(current)
  return { ...replica(resources, host, log, options), file }
}

function replica(
  resources: Resources,
  host: FixtureHost,
  log: ReturnType<typeof createFixtureLog>,
  options: ReplicaOptions,
): Replica {
  const api = createConfigApi({
    resources,
    allowances: options.allowances ?? {},
    expand: createExpand(options.allowedEnv ?? [], options.env ?? {}),
    turns: createTurns({ monotonic: () => performance.now() }),
    breathe: createBreathe({ monotonic: () => performance.now() }),
    flushLog: () => Promise.resolve(),
    status: () => ({
      synchronized: host.reported === undefined,
      revision: 1,
      appliedAt: undefined,
      lastError: host.reported,
    }),
    schema: configJsonSchema(),
    version: '1.2.3',
    log,
  })
  const send: Replica['send'] = async (method, path, body, headers = {}) => {
    const reply = await api({ method, target: path, headers, body, address: '127.0.0.1' })
    if (!(reply.body instanceof Uint8Array)) throw new Error('every answer has its body at hand')
    return {
      status: reply.status,
      headers: reply.headers,
      body: JSON.parse(Buffer.from(reply.body).toString()),
    }
  }
  return {
    resources,
    host,
    log,
    running: () => host.committed.at(-1) ?? {},
    send,
    call: (method, path, body, headers) =>
      send(
        method,
        `/api/config/resources${path}`,
        Buffer.from(body === undefined ? '' : JSON.stringify(body)),
        {
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      ),
  }
}
