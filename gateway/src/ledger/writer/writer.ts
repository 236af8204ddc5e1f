import type { LedgerSettings } from '../config.ts'
import type { LedgerStore } from '../store/store.ts'
import { type CommitCounts, createCommit } from './commit.ts'
import { startCommitLoop } from './commit-loop.ts'
import { createIntake } from './intake.ts'
import { createJournal } from './journal.ts'
import { createOrphans, type Owner } from './orphans.ts'
import { createOutage } from './outage.ts'
import type { FromWriter, SpoolPlace, ToWriter, WriterStatus } from './protocol.ts'
import { createRecordQueue, type RecordQueue } from './record-queue.ts'
import { createRetention } from './retention.ts'
import { createSources } from './sources.ts'
import { openSpoolFolder } from './spool-place.ts'

export type WriterOptions = {
  settings: Pick<LedgerSettings, 'kind' | 'maxQueue' | 'retentionMs' | 'usageRetentionMs'>
  store: LedgerStore
  source: string
  /** Text that no earlier thread of this process used, for file names. */
  incarnation: string
  spool: SpoolPlace
  owner: Owner
  uid: number | undefined
  isRunning(pid: number): boolean
  now(): number
  monotonic(): number
  random(): number
  send(message: FromWriter): void
}

/** Writes entries to the journal, then to the database. Receives the messages of the main thread. */
export type Writer = { receive(message: ToWriter): void }

/** Rows of a transaction. With SQLite 2,500 take some 200 ms, in which no lines are spooled. */
const maxRows = { sqlite: 2_500, postgres: 5_000 }
const maxSpoolBytes = 1024 * 1024 * 1024
const maxMemoryBytes = 64 * 1024 * 1024
const statusEveryMs = 500

export function createWriter(options: WriterOptions): Writer {
  const { settings, store, source, spool, now, monotonic, random, send } = options
  const log = (level: 'info' | 'warn' | 'error', fields: object, message: string) =>
    send({ kind: 'log', level, fields, message })
  const warn = (fields: object, message: string) => log('warn', fields, message)
  const counts: CommitCounts = { written: 0, retried: 0, droppedDetails: 0, droppedRows: 0, damaged: 0 }
  const own = createRecordQueue(source)
  const orphans = createOrphans({ ...options, place: spool })
  const sources = createSources({
    own,
    orphans,
    onFound: (other, rows) => log('info', { source: other, rows }, 'ledger spool of an ended process found'),
    onDamaged(records) {
      counts.damaged += records
      warn({ records, folder: spool.folder }, 'damaged ledger spool records skipped')
    },
  })
  const journal = createJournal(spool.folder, `${spool.prefix}-${source}-${options.incarnation}`)
  const lastNumber = prepareFolder(options, own, warn)
  const intake = createIntake({
    queue: own,
    lastNumber,
    journal,
    limits: { rows: settings.maxQueue, spoolBytes: maxSpoolBytes, memoryBytes: maxMemoryBytes },
    otherBytes: sources.otherBytes,
    monotonic,
    onSpool: (reason) => reportSpool(reason, spool, { log, warn }),
  })
  const outage = createOutage(monotonic, random, {
    started: (reason) => warn({ reason }, 'ledger database unavailable, entries are spooled'),
    ended: (ms) =>
      log('info', { seconds: Math.round(ms / 1_000), rows: own.rows() }, 'ledger database available again'),
  })
  const loop = startCommitLoop({
    store,
    sources,
    retention: createRetention({ ...settings, store, now, monotonic }),
    outage,
    commit: createCommit({ store, source, counts, maxRows: maxRows[settings.kind], now, onBudgets, warn }),
    now,
    monotonic,
    onBudgets,
    keepHouse: () => attempt(() => houseKeeping()),
  })

  function onBudgets(update: Extract<FromWriter, { kind: 'budgets' }>['update']): void {
    send({ kind: 'budgets', update })
  }

  function houseKeeping(): void {
    openSpoolFolder(spool.folder, options.uid)
    orphans.beat()
    journal.checkFile()
    sources.search()
  }

  function status(): WriterStatus {
    const { droppedDetails, droppedRows, damaged } = intake.counts
    return {
      connected: outage.error() === undefined,
      lastError: outage.error(),
      queuedRows: own.rows() + sources.otherRows(),
      spoolBytes: journal.bytes() + sources.otherBytes(),
      spoolError: intake.spoolError(),
      written: counts.written,
      retried: counts.retried,
      droppedDetails: counts.droppedDetails + droppedDetails,
      droppedRows: counts.droppedRows + droppedRows,
      damaged: counts.damaged + damaged,
    }
  }

  const timer = setInterval(() => send({ kind: 'status', status: status() }), statusEveryMs)

  async function close(): Promise<void> {
    await loop.close()
    clearInterval(timer)
    const lost = own.records().reduce((sum, { rows, isStored }) => (isStored ? sum : sum + rows), 0)
    if (lost > 0) log('error', { rows: lost }, 'ledger rows lost: neither database nor spool is writable')
    journal.close()
    orphans.close()
    await store.close().catch(() => undefined)
    send({ kind: 'status', status: status() })
    send({ kind: 'closed' })
  }

  return {
    receive(message) {
      switch (message.kind) {
        case 'lines':
          intake.accept(message.number, message)
          send({ kind: 'accepted', number: message.number })
          return loop.wake()
        case 'watchBudgets':
          return loop.watchBudgets()
        case 'close':
          void close()
      }
    },
  }
}

/**
 * Creates the spool folder, and queues the records of an earlier thread of this process. Returns the last of
 * their numbers. With an unusable folder, entries stay in memory.
 */
function prepareFolder(
  { spool, source, incarnation, uid, isRunning, owner }: WriterOptions,
  own: RecordQueue,
  warn: (fields: object, message: string) => void,
): number {
  try {
    openSpoolFolder(spool.folder, uid)
    // Seen from another source, so that the own files are those of an ended process.
    const orphans = createOrphans({ place: spool, source: incarnation, owner, isRunning })
    for (const record of orphans.open(source).records) own.push({ ...record, isStored: true })
  } catch (error) {
    warn({ err: error, folder: spool.folder }, 'ledger spool folder not usable')
  }
  return own.records().at(-1)?.number ?? 0
}

type Reports = Record<'warn', (fields: object, message: string) => void> & {
  log(level: 'info', fields: object, message: string): void
}

function reportSpool(reason: string | undefined, { folder }: SpoolPlace, { log, warn }: Reports): void {
  if (reason === undefined) log('info', { folder }, 'ledger spool writable again')
  else warn({ folder, reason }, 'ledger spool not writable, entries are in memory only')
}

/** Housekeeping of the folder: an error shows when the spool is written. */
function attempt(run: () => void): void {
  try {
    run()
  } catch {
    // `store` of the intake reports it.
  }
}
