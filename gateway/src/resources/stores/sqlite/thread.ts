import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Migrations } from '../migrations.ts'
import type { CommittedRows, RewrittenRow, RowChanges, RowKey, StoredRow } from '../row-driver.ts'

export type SqliteThreadSettings = {
  path: string
  migrations: Migrations
  pollMs: number
  pageRows: number
  keptRemovals: number
}

export type SqliteRequest =
  | { op: 'read'; since: number | undefined }
  | { op: 'begin'; since: number | undefined; waitMs: number }
  /** The next page of what `read` or `begin` has found. */
  | { op: 'page'; step: 'read' | 'begin' }
  | { op: 'commit'; changes: RowChanges }
  | { op: 'rollback' }
  | { op: 'rewrite'; rows: readonly RewrittenRow[]; waitMs: number }
  | { op: 'watch' }
  | { op: 'close' }

export type SqliteHead = { generation: number; complete: boolean; removed: RowKey[] }
export type SqlitePage = { rows: StoredRow[]; isLast: boolean }

export type SqliteAnswer =
  | { kind: 'done'; id: number; value: SqliteHead | SqlitePage | CommittedRows | undefined }
  | { kind: 'failed'; id: number; message: string }
  | { kind: 'at'; generation: number }
  | { kind: 'lost'; message: string }
  | { kind: 'replaced' }

/**
 * All work on a SQLite file, on a thread of its own: the library is synchronous, and a checkpoint or the lock of another
 * process would hold up traffic.
 *
 * The thread runs the text of this function, so it uses nothing from outside: a thread that loads the bundle takes ten times
 * as long to start and five times the memory (460 ms and 64 MB; this way 44 ms and 11 MB).
 */
export function runSqliteThread(): void {
  const { parentPort, workerData } = process.getBuiltinModule('node:worker_threads')
  const sqlite = process.getBuiltinModule('node:sqlite')
  const fs = process.getBuiltinModule('node:fs')
  const { dirname } = process.getBuiltinModule('node:path')
  if (parentPort === null) throw new Error('runs as a thread only')
  const port = parentPort
  const { path, migrations, pollMs, pageRows, keptRemovals }: SqliteThreadSettings = workerData

  // The writer holds the lock while a plan is made; reads and what they see stay apart from it.
  type Open = { writer: DatabaseSync; reader: DatabaseSync; file: string; companions: Map<string, string> }
  type Walk = { rows: Iterator<unknown>; end(): void }
  let open: Open | undefined
  let isWriting = false
  let isDistrusted = false
  let poll: NodeJS.Timeout | undefined
  const walks: { read?: Walk | undefined; begin?: Walk | undefined } = {}
  const maxPageCharacters = 256 * 1024

  const send = (answer: SqliteAnswer) => port.postMessage(answer)

  port.on('message', ({ id, request }: { id: number; request: SqliteRequest }) => {
    answer(request).then(
      (value) => send({ kind: 'done', id, value }),
      (error: unknown) => send({ kind: 'failed', id, message: explain(error) }),
    )
  })

  async function answer(
    request: SqliteRequest,
  ): Promise<SqliteHead | SqlitePage | CommittedRows | undefined> {
    switch (request.op) {
      case 'read':
        return startRead(request.since)
      case 'begin':
        return await begin(request.since, request.waitMs)
      case 'page':
        return nextPage(request.step)
      case 'commit':
        return commit(request.changes)
      case 'rollback':
        rollback()
        return undefined
      case 'rewrite':
        return await rewrite(request.rows, request.waitMs)
      case 'watch':
        watch()
        return undefined
      case 'close':
        clearTimeout(poll)
        close()
        return undefined
    }
  }

  function startRead(since: number | undefined): SqliteHead {
    const { reader } = connected()
    endWalk('read')
    reader.exec('begin')
    try {
      const { head, rows } = select(reader, since)
      walks.read = { rows, end: () => reader.exec('rollback') }
      return head
    } catch (error) {
      reader.exec('rollback')
      throw error
    }
  }

  /** Asks for the lock again and again, because waiting inside SQLite would hold up readers of this process. */
  async function lock(waitMs: number): Promise<DatabaseSync> {
    const deadline = performance.now() + waitMs
    for (;;) {
      const { writer } = connected()
      try {
        writer.exec('begin immediate')
        isWriting = true
        return writer
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error
        await new Promise((resolve) => setTimeout(resolve, 2 + 8 * Math.random()))
      }
    }
  }

  async function begin(since: number | undefined, waitMs: number): Promise<SqliteHead> {
    const writer = await lock(waitMs)
    try {
      const { head, rows } = select(writer, since)
      walks.begin = { rows, end: () => undefined }
      return head
    } catch (error) {
      rollback()
      throw error
    }
  }

  function select(
    db: DatabaseSync,
    since: number | undefined,
  ): { head: SqliteHead; rows: Iterator<unknown> } {
    const state = db.prepare('select generation, deltas_since from tollgate_state').get()
    if (state === undefined) throw new Error('its table tollgate_state is empty')
    const current = Number(state['generation'])
    const isKnown =
      since !== undefined && since <= current && since >= Number(state['deltas_since']) && !isDistrusted
    isDistrusted = false
    const columns = 'select kind, id, value, revision, created_at, updated_at from tollgate_resources'
    if (!isKnown) {
      return {
        head: { generation: current, complete: true, removed: [] },
        rows: inArrays(db.prepare(columns)).iterate(),
      }
    }
    const removed = inArrays(db.prepare('select kind, id from tollgate_removals where generation > ?'))
      .all(since)
      .map((row): RowKey => (Array.isArray(row) ? [String(row[0]), String(row[1])] : ['', '']))
    return {
      head: { generation: current, complete: false, removed },
      rows: inArrays(db.prepare(`${columns} where generation > ?`)).iterate(since),
    }
  }

  function inArrays(statement: StatementSync): StatementSync {
    statement.setReturnArrays(true)
    return statement
  }

  function nextPage(step: 'read' | 'begin'): SqlitePage {
    const walk = walks[step]
    if (walk === undefined) throw new Error('there is nothing to read')
    const page: StoredRow[] = []
    try {
      for (let characters = 0; page.length < pageRows && characters < maxPageCharacters; ) {
        const { done, value: row } = walk.rows.next()
        if (done === true) {
          endWalk(step)
          return { rows: page, isLast: true }
        }
        if (!Array.isArray(row)) continue
        const [kind, id, text, revision, createdAt, updatedAt]: unknown[] = row
        page.push([
          String(kind),
          String(id),
          String(text),
          Number(revision),
          String(createdAt),
          String(updatedAt),
        ])
        characters += String(text).length
      }
      return { rows: page, isLast: false }
    } catch (error) {
      endWalk(step)
      throw error
    }
  }

  function endWalk(step: 'read' | 'begin'): void {
    const walk = walks[step]
    walks[step] = undefined
    if (walk === undefined) return
    walk.rows.return?.()
    walk.end()
  }

  function commit({ puts, removes, at }: RowChanges): CommittedRows {
    const { writer } = connected()
    try {
      const state = writer.prepare('select generation, revision_floor from tollgate_state').get()
      const next = Number(state?.['generation']) + 1
      const put = writer.prepare(`
        insert into tollgate_resources (kind, id, value, revision, created_at, updated_at, generation)
        values (?1, ?2, ?3, ?6, ?4, ?4, ?5)
        on conflict (kind, id) do update set
          value = excluded.value, revision = revision + 1, updated_at = excluded.updated_at, generation = excluded.generation
        returning revision, created_at`)
      const forgetRemoval = writer.prepare(
        'delete from tollgate_removals where kind = ? and id = ? returning revision',
      )
      const written = puts.map(([kind, id, text]) => {
        const last = Number(forgetRemoval.get(kind, id)?.['revision'] ?? 0)
        const first = 1 + Math.max(last, Number(state?.['revision_floor']))
        const row = put.get(kind, id, text, at, next, first)
        return { revision: Number(row?.['revision']), createdAt: String(row?.['created_at']) }
      })
      const remove = writer.prepare(
        'delete from tollgate_resources where kind = ? and id = ? returning revision',
      )
      const noteRemoval = writer.prepare(
        'insert into tollgate_removals (kind, id, generation, revision) values (?, ?, ?, ?)',
      )
      const removed = removes.filter(([kind, id]) => {
        const row = remove.get(kind, id)
        if (row !== undefined) noteRemoval.run(kind, id, next, Number(row['revision']))
        return row !== undefined
      })
      if (removed.length > 0) prune(writer)
      if (written.length === 0 && removed.length === 0) {
        rollback()
        return { generation: next - 1, puts: [], removed: [] }
      }
      if (identify(path) !== open?.file) throw new Error('another file has been put in its place')
      writer.prepare('update tollgate_state set generation = ?').run(next)
      writer.exec('commit')
      isWriting = false
      return { generation: next, puts: written, removed }
    } catch (error) {
      rollback()
      throw error
    }
  }

  async function rewrite(rows: readonly RewrittenRow[], waitMs: number): Promise<undefined> {
    const writer = await lock(waitMs)
    try {
      const update = writer.prepare(
        'update tollgate_resources set value = ?3 where kind = ?1 and id = ?2 and revision = ?4',
      )
      for (const row of rows) update.run(...row)
      if (identify(path) !== open?.file) throw new Error('another file has been put in its place')
      writer.exec('commit')
      isWriting = false
    } catch (error) {
      rollback()
      throw error
    }
  }

  /** Whoever is further behind than the oldest removal kept reads everything. */
  function prune(writer: DatabaseSync): void {
    const oldest = writer
      .prepare('select generation from tollgate_removals order by generation desc limit 1 offset ?')
      .get(keptRemovals)?.['generation']
    if (oldest === undefined) return
    writer
      .prepare(
        `update tollgate_state set deltas_since = ?1, revision_floor = max(
          revision_floor, (select max(revision) from tollgate_removals where generation <= ?1))`,
      )
      .run(Number(oldest))
    writer.prepare('delete from tollgate_removals where generation <= ?').run(Number(oldest))
  }

  function rollback(): void {
    endWalk('begin')
    isWriting = false
    if (open?.writer.isTransaction) open.writer.exec('rollback')
  }

  function watch(): void {
    poll ??= setTimeout(() => {
      poll = undefined
      look()
      watch()
    }, pollMs)
  }

  function look(): void {
    // The one who writes reads what has changed anyway.
    if (isWriting) return
    try {
      const { writer } = connected()
      const generation = writer.prepare('select generation from tollgate_state').get()?.['generation']
      send({ kind: 'at', generation: Number(generation) })
    } catch (error) {
      send({ kind: 'lost', message: explain(error) })
    }
  }

  /** Opens the file where it is not open, and anew where another file has been put in its place. */
  function connected(): Open {
    if (open !== undefined && !isWriting) {
      if (identify(path) !== open.file) {
        leaveReplaced(open)
        isDistrusted = true
        send({ kind: 'replaced' })
      }
    }
    open ??= connect()
    return open
  }

  /** SQLite would take the log of the file that was there before for the log of the one that is there now. */
  function leaveReplaced({ companions }: Open): void {
    close()
    for (const [file, identity] of companions) {
      if (fs.existsSync(file) && identify(file) === identity) fs.rmSync(file)
    }
  }

  function identify(file: string): string {
    const { dev, ino } = fs.statSync(file, { bigint: true })
    return `${dev}:${ino}`
  }

  function connect(): Open {
    makeFolder(dirname(path))
    // Before there is anything in it to read for others.
    fs.closeSync(fs.openSync(path, 'a', 0o600))
    for (const file of [path, `${path}-wal`, `${path}-shm`]) keepPrivate(file)
    const opened: DatabaseSync[] = []
    const openFile = (options: { readOnly: boolean; timeout: number }): DatabaseSync => {
      const db = new sqlite.DatabaseSync(path, options)
      opened.push(db)
      return db
    }
    try {
      const writer = openFile({ readOnly: false, timeout: 0 })
      patiently(() => prepare(writer))
      const reader = openFile({ readOnly: true, timeout: 5000 })
      // Its files are there from the first read on.
      reader.prepare('select generation from tollgate_state').get()
      const logs = [`${path}-wal`, `${path}-shm`].filter((file) => fs.existsSync(file))
      const companions = new Map(logs.map((file) => [file, identify(file)]))
      return { writer, reader, file: identify(path), companions }
    } catch (error) {
      for (const db of opened) db.close()
      throw error
    }
  }

  /** Step by step, because the recursive form never ends where a file system refuses folders without saying so (/proc). */
  function makeFolder(folder: string): void {
    if (isFolderMade(folder)) return
    if (dirname(folder) !== folder) makeFolder(dirname(folder))
    if (!isFolderMade(folder)) throw new Error(`its folder ${folder} cannot be created`)
  }

  /** Other processes may make the same folder at the same time. False where the folder above is missing. */
  function isFolderMade(folder: string): boolean {
    try {
      fs.mkdirSync(folder, { mode: 0o700 })
      syncFolder(dirname(folder))
      return true
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (code !== 'EEXIST' && code !== 'ENOENT') throw error
      return code === 'EEXIST'
    }
  }

  /** Writes the entry of a new folder to disk. SQLite does so for the files inside. */
  function syncFolder(folder: string): void {
    let descriptor: number | undefined
    try {
      descriptor = fs.openSync(folder, 'r')
      fs.fsyncSync(descriptor)
    } catch {
      // A folder that can be written but not read, or a platform without synchronisation of folders.
    } finally {
      if (descriptor !== undefined) fs.closeSync(descriptor)
    }
  }

  function keepPrivate(file: string): void {
    try {
      if ((fs.statSync(file).mode & 0o077) !== 0) fs.chmodSync(file, 0o600)
    } catch {
      // Not there yet, or somebody else's: then its permissions are their choice.
    }
  }

  function prepare(writer: DatabaseSync): void {
    // What is deleted is overwritten: it may be a secret.
    writer.exec('pragma journal_mode = wal; pragma secure_delete = on')
    // Every commit is on disk before it is acknowledged: a power cut must not bring a deleted key back. With `normal` the
    // log is synchronised at checkpoints only. `fullfsync` makes macOS flush the cache of the drive.
    writer.exec('pragma synchronous = full; pragma fullfsync = on')
    writer.exec('pragma journal_size_limit = 67108864')
    if (schemaVersion(writer) === migrations.length) return
    writer.exec('begin immediate')
    try {
      writer.exec(
        'create table if not exists tollgate_migrations (version integer primary key, applied_at text not null) strict',
      )
      const from = schemaVersion(writer)
      if (from > migrations.length) {
        throw new Error(
          `its schema has version ${from}, but this version of Tollgate knows ${migrations.length} at most: use a newer Tollgate`,
        )
      }
      const note = writer.prepare('insert into tollgate_migrations (version, applied_at) values (?, ?)')
      for (const [index, sql] of migrations.entries()) {
        if (index < from) continue
        writer.exec(sql)
        note.run(index + 1, new Date().toISOString())
      }
      writer.exec('commit')
    } catch (error) {
      if (writer.isTransaction) writer.exec('rollback')
      throw error
    }
  }

  function schemaVersion(db: DatabaseSync): number {
    const table = db.prepare("select 1 from sqlite_master where name = 'tollgate_migrations'").get()
    if (table === undefined) return 0
    return Number(
      db.prepare('select max(version) as version from tollgate_migrations').get()?.['version'] ?? 0,
    )
  }

  /** Several processes that start at once want the file for themselves for a moment. */
  function patiently(run: () => void): void {
    const deadline = performance.now() + 5000
    for (;;) {
      try {
        run()
        return
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 + 20 * Math.random())
      }
    }
  }

  function close(): void {
    for (const step of ['read', 'begin'] as const) {
      try {
        endWalk(step)
      } catch {
        // Closing ends it as well.
      }
    }
    isWriting = false
    const { reader, writer } = open ?? {}
    open = undefined
    reader?.close()
    writer?.close()
  }

  /** SQLite's extended codes hold the primary code in their low byte. */
  function sqliteCode(error: unknown): number | undefined {
    const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined
    return typeof code === 'number' ? code & 0xff : undefined
  }

  function isBusy(error: unknown): boolean {
    const code = sqliteCode(error)
    return code === 5 || code === 6
  }

  function explain(error: unknown): string {
    const text = error instanceof Error ? error.message : String(error)
    const reasons: Record<number, string> = {
      5: 'another process has held its lock for too long',
      8: 'it cannot be written: the file, its folder or its file system is read-only',
      10: `the disk failed: ${text}`,
      11: 'it is damaged: restore it from a backup',
      13: 'the disk is full',
      14: `it cannot be opened: ${text}`,
      26: 'it is not a SQLite database',
    }
    const code = sqliteCode(error)
    return `the SQLite database ${path} cannot be used: ${(code === undefined ? undefined : reasons[code]) ?? text}`
  }
}
