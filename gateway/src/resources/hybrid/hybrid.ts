import { ConfigRejected, reasonsOf } from '../../config/config-rejected.ts'
import type { PreparedConfig } from '../../config/live/live.ts'
import { type ConfigTree, validationSteps } from '../../config/load/validate.ts'
import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../lib/clock.ts'
import { createYieldPoint, runYielding } from '../../lib/scheduling/yielding.ts'
import { asError } from '../../lib/thrown.ts'
import type { Log } from '../../telemetry/log.ts'
import {
  type ChangeOutcome,
  type ChangeRequest,
  changedFields,
  type Envelope,
  notFound,
  refusal,
} from '../change/change.ts'
import { envelopesOf, keyEnvelope, namedEnvelope } from '../change/envelope.ts'
import { findKey, findNamed, type Planned, planning } from '../change/hybrid-plan.ts'
import { findKind, type Kind } from '../kinds.ts'
import type { Requester, ResourceHost, Resources } from '../resources.ts'
import {
  type ResourceStore,
  type StoreDelta,
  type StoredResource,
  StoreUnavailable,
} from '../stores/store.ts'
import { type OverlayResult, overlay } from './overlay.ts'
import {
  type Expand,
  emptyIndex,
  findRecord,
  indexUpdateSteps,
  type RecordIndex,
  recordKey,
} from './record-index.ts'

export type HybridOptions = {
  readonly store: ResourceStore
  readonly host: ResourceHost
  readonly expand: Expand
  readonly randomUuid: () => string
  readonly clock: Clock
  readonly log: Log
  /** Time until the database is asked again, by the number of failures. */
  readonly retryDelayMs?: (failures: number) => number
}

/** A configuration that is ready to run, with what it was made of. */
type Ready = {
  readonly overlaid: OverlayResult
  readonly file: Config
  readonly known: RecordIndex
  readonly prepared: PreparedConfig
}

/**
 * Resources in a database, over the configuration of the file. Every write is checked together with everything else while all
 * other writers wait, and is running here before it is answered. While the database is away, what was known last serves.
 */
export function createHybridResources(options: HybridOptions): Resources {
  const { store, host, expand, log, clock } = options
  const retryDelayMs = options.retryDelayMs ?? defaultRetryDelayMs
  let file: Config | undefined
  let known: RecordIndex | undefined
  /** The overlay that runs, if one ever did. */
  let running: OverlayResult | undefined
  /** What was last found to be valid as a whole; keys are checked one by one. */
  let validated: (Pick<Ready, 'file'> & { named: RecordIndex['named'] }) | undefined
  const validatedObjects = new WeakSet<object>()
  let database: 'pending' | 'connected' | 'lost' = 'pending'
  let lastError: string | undefined
  /** Why what the database says does not run. */
  let rejection: string | undefined
  let failures = 0
  let retry: NodeJS.Timeout | undefined
  let isWatching = false
  let needsSync = false
  let needsFullRead = false
  let syncing: Promise<void> | undefined
  let isClosed = false
  const changes = new Set<Promise<ChangeOutcome>>()
  const yieldPoint = createYieldPoint(clock)
  const inTurns = <T>(steps: Iterator<unknown, T>) => runYielding(steps, yieldPoint)

  async function ready(next: Config, records: RecordIndex): Promise<Ready> {
    const overlaid = overlay(next, records, running?.config)
    if (overlaid.refusals.length > 0) throw new ConfigRejected(overlaid.refusals)
    await yieldPoint()
    const isChecked =
      records.ordered.length === 0 || (validated?.file === next && validated.named === records.named)
    const issues = isChecked ? [] : await inTurns(validationSteps(overlaid.keyless, validatedObjects))
    if (issues.length > 0) throw new ConfigRejected(issues)
    for (const { item } of records.ordered) host.markApi(item)
    await yieldPoint()
    const prepared = await host.prepare(checkedConfig(overlaid.config))
    return { overlaid, file: next, known: records, prepared }
  }

  function run({ overlaid, file: next, known: records, prepared }: Ready): void {
    noteShadowed(overlaid.shadowed, running?.shadowed, log)
    prepared.commit()
    running = overlaid
    rejection = undefined
    file = next
    validated = { file: next, named: records.named }
  }

  function connected(): void {
    if (database === 'lost') log.info({}, 'the database of config resources is back')
    if (database !== 'connected' || lastError !== undefined) host.reportDatabase(undefined)
    database = 'connected'
    lastError = undefined
    failures = 0
  }

  function lost(error: Error): void {
    if (lastError === undefined) {
      log.error(
        { err: error },
        'the database of config resources cannot be reached, the last state keeps serving',
      )
    }
    if (lastError !== error.message) host.reportDatabase(error.message)
    lastError = error.message
    if (database === 'connected') database = 'lost'
  }

  function retryLater(): void {
    if (isClosed || retry !== undefined) return
    failures += 1
    retry = setTimeout(() => {
      retry = undefined
      sync()
    }, retryDelayMs(failures))
  }

  /** Reads what others have stored, soon; calls while it does so count as one. */
  function sync(): void {
    if (isClosed) return
    needsSync = true
    syncing ??= (async () => {
      try {
        while (needsSync && !isClosed) {
          needsSync = false
          await readAndRun()
        }
      } catch (error) {
        log.error({ err: asError(error) }, 'changes of config resources cannot be applied')
        retryLater()
      } finally {
        syncing = undefined
      }
    })()
  }

  /** Reads outside the lock of reloads: a database that hangs must not delay a change of the file. */
  async function readAndRun(): Promise<void> {
    if (isClosed || file === undefined) return
    const from = known
    const delta = await readSince(needsFullRead ? undefined : from?.generation)
    if (delta === undefined) return
    await host.exclusive(async () => {
      if (isClosed || file === undefined) return
      if (known !== from) {
        // A write was faster, so the delta may be older than the known state. A complete one replaces a distrusted state,
        // so the next one has to be complete too.
        needsFullRead = delta.complete
        needsSync = true
        return
      }
      needsFullRead = false
      await applyDelta(delta, file)
    })
  }

  async function readSince(generation: number | undefined): Promise<StoreDelta | undefined> {
    try {
      const delta = await store.read(generation)
      connected()
      return delta
    } catch (error) {
      lost(asError(error))
      retryLater()
      return undefined
    }
  }

  /** Runs what others have stored. */
  async function applyDelta(delta: StoreDelta, over: Config): Promise<void> {
    const isNews = known === undefined || !isEmpty(delta)
    const before = known
    known = await inTurns(indexUpdateSteps(known ?? emptyIndex, delta, expand))
    noteProblems(known, before, log)
    if (!isNews && running !== undefined) return
    try {
      run(await ready(over, known))
      if (before !== undefined)
        log.info({ generation: known.generation }, 'changes of config resources applied')
    } catch (error) {
      refuse(error)
    }
  }

  /** What the database says cannot run. It is tried again when the database or the file changes. */
  function refuse(error: unknown): void {
    const reasons = reasonsOf(error)
    const isKnown = rejection === reasons.join('\n')
    rejection = reasons.join('\n')
    host.report(rejection)
    // Without anything that runs, what only looks like a lasting reason, such as a port in use, is worth another try.
    if (running === undefined) retryLater()
    for (const reason of isKnown ? [] : reasons) {
      log.error({ reason }, 'config resources rejected, the previous configuration keeps running')
    }
  }

  function watch(): void {
    if (isWatching) return
    isWatching = true
    store.watch({ onChange: sync, onLost: lost })
  }

  /** The configuration of the file alone is checked and its ports are open, but nothing is served from it. */
  async function runFileAlone(next: Config): Promise<void> {
    const prepared = await host.prepare(next)
    prepared.commit()
    file = next
  }

  async function useFile(next: Config): Promise<void> {
    if (known !== undefined) {
      run(await ready(next, known))
      return
    }
    const isFirst = file === undefined
    file = next
    const delta = isFirst ? await readSince(undefined) : undefined
    if (delta !== undefined) await applyDelta(delta, next)
    if (running === undefined) {
      await runFileAlone(next)
      if (rejection !== undefined) host.report(rejection)
    }
    watch()
  }

  async function change(request: ChangeRequest, requester: Requester): Promise<ChangeOutcome> {
    // A reload under way ends before the lock of all writers is taken.
    await host.exclusive(() => Promise.resolve())
    if (known === undefined || file === undefined) return refusal(503, notReadYet)
    const step: Step = {
      from: { known, file },
      outcome: undefined,
      decided: undefined,
      isOver: false,
      leave: undefined,
    }
    try {
      return await write(request, requester, step)
    } finally {
      step.isOver = true
      step.leave?.()
    }
  }

  /**
   * Waits for the database outside the lock of reloads, which is taken when the plan is made and released after the commit.
   * The configuration of the plan is then the one that the commit changes.
   */
  async function write(request: ChangeRequest, requester: Requester, step: Step): Promise<ChangeOutcome> {
    let delta: StoreDelta
    try {
      delta = await store.write(step.from.known.generation, async (since) => {
        const leave = await enterExclusive(host)
        if (step.isOver) {
          leave()
          return undefined
        }
        step.leave = leave
        step.from = { known: known ?? step.from.known, file: file ?? step.from.file }
        await decide(request, await inTurns(indexUpdateSteps(step.from.known, since, expand)), step)
        return step.decided?.planned.changes
      })
    } catch (error) {
      step.isOver = true
      step.decided?.ready?.prepared.abort()
      if (!(error instanceof StoreUnavailable)) throw error
      lost(error)
      // It may have been committed all the same.
      retryLater()
      return refusal(503, `config resources cannot be stored: ${error.message}`)
    }
    connected()
    const { decided, outcome, from } = step
    if (decided === undefined) {
      // The store takes what it has told for known and does not announce it again: a key that was deleted elsewhere
      // would go on working here.
      await applyDelta(delta, from.file)
      return outcome ?? refusal(500, 'nothing was decided')
    }
    const { planned, ready: state } = decided
    if (state === undefined) {
      await applyDelta(delta, from.file)
      await inTurns(audit(planned, { before: from.known, after: known ?? from.known }, requester, log))
      return { kind: 'removed', id: planned.removed ?? '' }
    }
    const own = new Set(planned.stored.map(({ kind, id }) => recordKey(kind.name, id)))
    const stored = await inTurns(indexUpdateSteps(state.known, delta, expand, own))
    known = stored
    run({ ...state, known: stored })
    await inTurns(audit(planned, { before: from.known, after: stored }, requester, log))
    return outcomeOf(planned, stored, state.overlaid.shadowed)
  }

  /** Whether the change may be made, in what `step` holds afterwards. The lock of all writers is held meanwhile. */
  async function decide(request: ChangeRequest, current: RecordIndex, step: Step): Promise<void> {
    const over = step.from.file
    const { randomUuid } = options
    const planned = await inTurns(planning(request, { known: current, file: over, expand, randomUuid }))
    if (planned.kind === 'refused') {
      step.outcome = planned
      return
    }
    const expected = await inTurns(provisional(planned, current, clock))
    const next = await inTurns(indexUpdateSteps(current, expected, expand))
    try {
      const state = await ready(over, next)
      if (!step.isOver && !request.dryRun && planned.changes.length > 0) {
        step.decided = { planned, ready: state }
        return
      }
      state.prepared.abort()
      step.outcome = outcomeOf(planned, next, state.overlaid.shadowed)
    } catch (error) {
      if (!request.dryRun && removesProblem(planned, current) && isBlocked(next)) {
        step.decided = { planned, ready: undefined }
        return
      }
      step.outcome = refusal(422, reasonsOf(error).join('\n'))
    }
  }

  return {
    useFile,
    async reapply() {
      if (file === undefined) return
      // Where the records do not run beside the file, the file alone would look as if all were well.
      if (known === undefined) await runFileAlone(file)
      else run(await ready(file, known))
    },
    pending() {
      if (running !== undefined) return undefined
      return known === undefined ? 'database' : 'config resources'
    },
    list(kind) {
      return known === undefined
        ? refusal(503, notReadYet)
        : envelopesOf(known, running?.shadowed ?? nothing, kind)
    },
    find(kind, id) {
      if (known === undefined) return refusal(503, notReadYet)
      return envelopeAt(kind, id, known, running?.shadowed ?? nothing) ?? notFound(kind, id)
    },
    change(request, requester) {
      const changing = change(request, requester)
      changes.add(changing)
      return changing.finally(() => changes.delete(changing))
    },
    async idle() {
      await Promise.allSettled(changes)
    },
    effective: () => ({ config: running?.config ?? file ?? {}, file: file ?? {} }),
    status() {
      const records = known ?? emptyIndex
      return {
        mode: 'hybrid',
        database: {
          state: database,
          lastError,
          generation: records.generation,
          records: records.named.size + records.keys.length,
          problems: [...records.problems.values()]
            .slice(0, 100)
            .map(({ kind, id, reason }) => ({ kind, id, reason })),
          shadowed: [...(running?.shadowed ?? nothing)].slice(0, 100),
        },
      }
    },
    async close() {
      isClosed = true
      clearTimeout(retry)
      await syncing
      await store.close()
    },
  }
}

type Step = {
  /** Starting point of the change; read again when the plan is made. */
  from: { readonly known: RecordIndex; readonly file: Config }
  outcome: ChangeOutcome | undefined
  /** Without `ready` it is stored and cannot run: other records that cannot be read block the configuration. */
  decided: { readonly planned: Planned; readonly ready: Ready | undefined } | undefined
  /** The store has given up waiting: what is ready now never runs. */
  isOver: boolean
  /** Releases the lock of reloads. */
  leave: (() => void) | undefined
}

/** Whether a change removes a record that cannot be read, and does nothing else. */
function removesProblem({ changes }: Planned, { problems }: RecordIndex): boolean {
  const [change, ...others] = changes
  return change?.op === 'remove' && others.length === 0 && problems.has(`${change.kind} ${change.id}`)
}

function isBlocked({ problems }: RecordIndex): boolean {
  return [...problems.values()].some(({ blocking }) => blocking)
}

/** Takes the lock of reloads; resolves with its release. */
function enterExclusive(host: ResourceHost): Promise<() => void> {
  return new Promise((resolve) => {
    void host.exclusive(() => new Promise<void>((leave) => resolve(leave)))
  })
}

const notReadYet = 'the database of config resources has not been read yet'
const nothing: ReadonlySet<string> = new Set()

function defaultRetryDelayMs(failures: number): number {
  return Math.min(5_000, 250 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2)
}

/** The guard: all of the tree was checked, virtual keys one by one and the rest as a whole. */
function checkedConfig(tree: ConfigTree): Config {
  return tree as Config
}

function isEmpty({ changed, unreadable, removed, complete }: StoreDelta): boolean {
  return !complete && changed.length === 0 && unreadable.length === 0 && removed.length === 0
}

/** A plan as what the database would say after it. */
function* provisional({ changes }: Planned, known: RecordIndex, clock: Clock): Generator<void, StoreDelta> {
  const now = new Date(clock.now()).toISOString()
  const changed: StoredResource[] = []
  const removed: { kind: string; id: string }[] = []
  for (const change of changes) {
    yield
    const { kind, id } = change
    if (change.op === 'remove') {
      removed.push({ kind, id })
      continue
    }
    const row = findKind(kind)
    const before = row && findRecord(known, row, id)
    changed.push({
      kind,
      id,
      value: change.value,
      revision: (before?.revision ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
    })
  }
  return { changed, unreadable: [], removed, generation: known.generation, complete: false }
}

function outcomeOf(
  { stored, removed }: Planned,
  known: RecordIndex,
  shadowed: ReadonlySet<string>,
): ChangeOutcome {
  if (removed !== undefined) return { kind: 'removed', id: removed }
  const resources = stored.flatMap(({ kind, id }) => envelopeAt(kind, id, known, shadowed) ?? [])
  return { kind: 'stored', resources }
}

function envelopeAt(
  kind: Kind,
  id: string,
  known: RecordIndex,
  shadowed: ReadonlySet<string>,
): Envelope | undefined {
  if (kind.placement.kind === 'keys') {
    const key = findKey(id, known)
    return key && keyEnvelope(kind, key, shadowed)
  }
  const record = findNamed(kind, id, known)
  return record === undefined || record.isPlaceholder ? undefined : namedEnvelope(record, shadowed)
}

/** One line for each record that a request changed: who, what, and which fields, without secrets. */
function* audit(
  { changes }: Planned,
  { before, after }: { before: RecordIndex; after: RecordIndex },
  requester: Requester,
  log: Log,
): Generator<void> {
  for (const { op, kind, id } of changes) {
    yield
    const row = findKind(kind)
    if (row === undefined) continue
    const old = envelopeAt(row, id, before, nothing)
    const now = envelopeAt(row, id, after, nothing)
    const { revision } = now ?? old ?? {}
    const named = { kind: row, name: now?.name ?? old?.name }
    const changed = changedFields(named, old?.value, now?.value)
    const fields = changed.map(({ field }) => field)
    log.info({ audit: { op, kind, id, revision, fields, changed, ...requester } }, 'config resource changed')
  }
}

/** With another encryption key every record is a problem: the first ones say what there is to know. */
const mostNoted = 20

function noteShadowed(now: ReadonlySet<string>, before: ReadonlySet<string> | undefined, log: Log): void {
  const fresh = [...now].filter((record) => before?.has(record) !== true)
  for (const record of fresh.slice(0, mostNoted)) {
    log.warn({ record }, 'a record of the database does not count, because the file says the same thing')
  }
  if (fresh.length > mostNoted) log.warn({ records: fresh.length }, 'and so it is with more records')
}

function noteProblems({ problems }: RecordIndex, before: RecordIndex | undefined, log: Log): void {
  if (problems === before?.problems) return
  const fresh = [...problems].filter(([key]) => before?.problems.has(key) !== true)
  for (const [, { kind, id, reason }] of fresh.slice(0, mostNoted)) {
    log.error({ kind: kind.slice(0, 100), id, reason }, 'a record of the database cannot be used')
  }
  if (fresh.length > mostNoted) log.error({ records: fresh.length }, 'and so it is with more records')
}
