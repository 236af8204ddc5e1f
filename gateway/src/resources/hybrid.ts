import { ConfigRejected, type PreparedConfig, reasonsOf } from '../config/running.ts'
import type { Config } from '../config/schema.ts'
import { type ConfigTree, validateConfig } from '../config/validate.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../pipeline/log.ts'
import {
  type ChangeOutcome,
  type ChangeRequest,
  changedFields,
  type Envelope,
  notFound,
  refusal,
} from './change.ts'
import { envelopesOf, keyEnvelope, namedEnvelope } from './envelope.ts'
import { findKey, findNamed, type Planned, planChange } from './hybrid-plan.ts'
import type { Kind } from './kinds.ts'
import { type Expand, type Known, learn, nothingKnown } from './known.ts'
import { type Overlaid, overlay } from './overlay.ts'
import type { Requester, ResourceHost, Resources } from './resources.ts'
import { type ResourceStore, type StoreDelta, type StoredResource, StoreUnavailable } from './store.ts'

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
  readonly overlaid: Overlaid
  readonly file: Config
  readonly known: Known
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
  let known: Known | undefined
  /** The overlay that runs, if one ever did. */
  let running: Overlaid | undefined
  /** What was last found to be valid as a whole; keys are checked one by one. */
  let valid: (Pick<Ready, 'file'> & { named: Known['named'] }) | undefined
  const sound = new WeakSet<object>()
  let database: 'pending' | 'connected' | 'lost' = 'pending'
  let lastError: string | undefined
  /** Why what the database says does not run. */
  let blockedBy: string | undefined
  let failures = 0
  let retry: NodeJS.Timeout | undefined
  let isWatching = false
  let isBehind = false
  let catching: Promise<void> | undefined
  let isClosed = false

  async function ready(next: Config, records: Known): Promise<Ready> {
    const overlaid = overlay(next, records, running?.config)
    if (overlaid.refusals.length > 0) throw new ConfigRejected(overlaid.refusals)
    const isChecked = records.ordered.length === 0 || (valid?.file === next && valid.named === records.named)
    const issues = isChecked ? [] : validateConfig(overlaid.keyless, sound)
    if (issues.length > 0) throw new ConfigRejected(issues)
    const prepared = await host.prepare(checkedConfig(overlaid.config))
    return { overlaid, file: next, known: records, prepared }
  }

  function run({ overlaid, file: next, known: records, prepared }: Ready): void {
    noteShadowed(overlaid.shadowed, running?.shadowed, log)
    prepared.commit()
    running = overlaid
    blockedBy = undefined
    file = next
    valid = { file: next, named: records.named }
  }

  function connected(): void {
    if (database === 'lost') log.info({}, 'the database of config resources is back')
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
    lastError = error.message
    if (database === 'connected') database = 'lost'
  }

  function retryLater(): void {
    if (isClosed || retry !== undefined) return
    failures += 1
    retry = setTimeout(() => {
      retry = undefined
      catchUp()
    }, retryDelayMs(failures))
  }

  /** Reads what others have stored, soon; calls while it does so count as one. */
  function catchUp(): void {
    if (isClosed) return
    isBehind = true
    catching ??= (async () => {
      try {
        while (isBehind && !isClosed) {
          isBehind = false
          await host.exclusive(readAndRun)
        }
      } catch (error) {
        log.error({ err: asError(error) }, 'changes of config resources cannot be applied')
        retryLater()
      } finally {
        catching = undefined
      }
    })()
  }

  async function readAndRun(): Promise<void> {
    if (isClosed || file === undefined) return
    let delta: StoreDelta
    try {
      delta = await store.read(known?.generation)
    } catch (error) {
      lost(asError(error))
      retryLater()
      return
    }
    connected()
    await takeIn(delta, file)
  }

  /** Runs what others have stored. */
  async function takeIn(delta: StoreDelta, over: Config): Promise<void> {
    const isNews = known === undefined || !isEmpty(delta)
    const before = known
    known = learn(known ?? nothingKnown, delta, expand)
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
    const isKnown = blockedBy === reasons.join('\n')
    blockedBy = reasons.join('\n')
    host.report(blockedBy)
    // Without anything that runs, what only looks like a lasting reason, such as a port in use, is worth another try.
    if (running === undefined) retryLater()
    for (const reason of isKnown ? [] : reasons) {
      log.error({ reason }, 'config resources rejected, the previous configuration keeps running')
    }
  }

  function watch(): void {
    if (isWatching) return
    isWatching = true
    store.watch({ onChange: catchUp, onLost: lost })
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
    if (isFirst) await readAndRun()
    if (running === undefined) {
      await runFileAlone(next)
      if (blockedBy !== undefined) host.report(blockedBy)
    }
    watch()
  }

  async function change(request: ChangeRequest, requester: Requester): Promise<ChangeOutcome> {
    return host.exclusive(async () => {
      if (known === undefined || file === undefined) return refusal(503, notReadYet)
      return await write(request, requester, { known, file })
    })
  }

  async function write(
    request: ChangeRequest,
    requester: Requester,
    from: { known: Known; file: Config },
  ): Promise<ChangeOutcome> {
    const step: Step = { outcome: undefined, decided: undefined, isOver: false }
    let delta: StoreDelta
    try {
      delta = await store.write(from.known.generation, async (since) => {
        await decide(request, learn(from.known, since, expand), from.file, step)
        return step.decided?.planned.changes
      })
    } catch (error) {
      step.isOver = true
      step.decided?.ready.prepared.abort()
      if (!(error instanceof StoreUnavailable)) throw error
      lost(error)
      // It may have been committed all the same.
      retryLater()
      return refusal(503, `config resources cannot be stored: ${error.message}`)
    }
    connected()
    const { decided, outcome } = step
    if (decided === undefined) {
      // The store takes what it has told for known and does not announce it again: a key that was deleted elsewhere
      // would go on working here.
      await takeIn(delta, from.file)
      return outcome ?? refusal(500, 'nothing was decided')
    }
    const { planned, ready: state } = decided
    known = learn(state.known, delta, expand, new Set(planned.stored.map(({ id }) => id)))
    run({ ...state, known })
    audit(request, planned, { before: from.known, after: known }, requester, log)
    return outcomeOf(planned, known, state.overlaid.shadowed)
  }

  /** Whether the change may be made, in what `step` holds afterwards. The lock of all writers is held meanwhile. */
  async function decide(request: ChangeRequest, current: Known, over: Config, step: Step): Promise<void> {
    const planned = planChange(request, {
      known: current,
      file: over,
      expand,
      randomUuid: options.randomUuid,
    })
    if (planned.kind === 'refused') {
      step.outcome = planned
      return
    }
    const next = learn(current, provisional(planned, current, clock), expand)
    try {
      const state = await ready(over, next)
      if (!step.isOver && !request.dryRun && planned.changes.length > 0) {
        step.decided = { planned, ready: state }
        return
      }
      state.prepared.abort()
      step.outcome = outcomeOf(planned, next, state.overlaid.shadowed)
    } catch (error) {
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
    change,
    effective: () => ({ config: running?.config ?? file ?? {}, file: file ?? {} }),
    status() {
      const records = known ?? nothingKnown
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
      await catching
      await store.close()
    },
  }
}

type Step = {
  outcome: ChangeOutcome | undefined
  decided: { readonly planned: Planned; readonly ready: Ready } | undefined
  /** The store has given up waiting: what is ready now never runs. */
  isOver: boolean
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
function provisional({ changes }: Planned, known: Known, clock: Clock): StoreDelta {
  const now = new Date(clock.now()).toISOString()
  const changed: StoredResource[] = []
  const removed: { kind: string; id: string }[] = []
  for (const change of changes) {
    const { kind, id } = change
    if (change.op === 'remove') {
      removed.push({ kind, id })
      continue
    }
    const before = known.named.get(id) ?? findKey(id, known)
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

function outcomeOf({ stored, removed }: Planned, known: Known, shadowed: ReadonlySet<string>): ChangeOutcome {
  if (removed !== undefined) return { kind: 'removed', id: removed }
  const resources = stored.flatMap(({ kind, id }) => envelopeAt(kind, id, known, shadowed) ?? [])
  return { kind: 'stored', resources }
}

function envelopeAt(
  kind: Kind,
  id: string,
  known: Known,
  shadowed: ReadonlySet<string>,
): Envelope | undefined {
  if (kind.placement.kind === 'keys') {
    const key = findKey(id, known)
    return key && keyEnvelope(kind, key, shadowed)
  }
  const record = findNamed(kind, id, known)
  return record && namedEnvelope(record, shadowed)
}

/** One line for each record that a request changed: who, what, and which fields, never their values. */
function audit(
  { change }: ChangeRequest,
  { changes }: Planned,
  { before, after }: { before: Known; after: Known },
  requester: Requester,
  log: Log,
): void {
  for (const { op, kind, id } of changes) {
    const old = envelopeAt(change.kind, id, before, nothing)
    const now = envelopeAt(change.kind, id, after, nothing)
    const { revision } = now ?? old ?? {}
    const fields = changedFields(old?.value, now?.value)
    log.info({ audit: { op, kind, id, revision, fields, ...requester } }, 'config resource changed')
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

function noteProblems({ problems }: Known, before: Known | undefined, log: Log): void {
  if (problems === before?.problems) return
  const fresh = [...problems].filter(([key]) => before?.problems.has(key) !== true)
  for (const [, { kind, id, reason }] of fresh.slice(0, mostNoted)) {
    log.error({ kind: kind.slice(0, 100), id, reason }, 'a record of the database cannot be used')
  }
  if (fresh.length > mostNoted) log.error({ records: fresh.length }, 'and so it is with more records')
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
