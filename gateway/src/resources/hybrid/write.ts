import { reasonsOf } from '../../config/config-rejected.ts'
import type { Config } from '../../config/schema.ts'
import { DatabaseUnavailable } from '../../database/database-unavailable.ts'
import type { Clock } from '../../lib/clock.ts'
import { runYielding } from '../../lib/scheduling/yielding.ts'
import { type ChangeOutcome, type ChangeRequest, refusal } from '../change/change.ts'
import { type ExistingRecord, type Plan, planSteps } from '../change/plan.ts'
import type { Requester, ResourceHost } from '../resources.ts'
import type { HistoryOrigin, StoreDelta, StoredResource } from '../stores/store.ts'
import { auditSteps } from './audit.ts'
import { findEnvelope } from './envelope.ts'
import { createHybridPlanState, storeChangeSteps } from './plan-state.ts'
import { recordKey, toStored } from './record.ts'
import { findRecord, indexUpdateSteps, type RecordIndex } from './record-index.ts'
import type { Candidate, HybridContext } from './state.ts'
import type { Sync, SyncParts } from './sync.ts'

/** Refusal message until the first read of the database. */
export const notReadYet = 'the database of config resources has not been read yet'

type Sources = { readonly index: RecordIndex; readonly file: Config }

/** Result of a plan under the lock of all writers. */
type Decision =
  | { readonly kind: 'pending' }
  /** Refused or a dry run: nothing is stored. */
  | { readonly kind: 'decided'; readonly outcome: ChangeOutcome }
  | { readonly kind: 'activates'; readonly plan: Plan<ExistingRecord>; readonly candidate: Candidate }
  /** Removes an unreadable record, while others still prevent the activation. */
  | { readonly kind: 'unblocks'; readonly plan: Plan<ExistingRecord> }

/** A write in progress. */
type Write = {
  readonly request: ChangeRequest
  readonly requester: Requester
  /** Sources of the plan; updated when the plan starts. */
  sources: Sources
  decision: Decision
  /** The store no longer waits: a candidate prepared from now on is discarded. */
  isOver: boolean
  /** Releases the lock of reloads. */
  release: (() => void) | undefined
}

/**
 * Stores changes of clients. A change is validated together with all records and is active before its outcome
 * is returned.
 */
export function createWriter(
  context: HybridContext,
  parts: SyncParts,
  sync: Sync,
): (request: ChangeRequest, requester: Requester) => Promise<ChangeOutcome> {
  const { store, host, expand } = context
  const { state, activation, connection, retry } = parts
  const run = <T>(steps: Iterator<unknown, T>) => runYielding(steps, context.yieldPoint)

  /** Decides under the lock of all writers and, from then on, the lock of reloads. */
  async function decide(write: Write, current: RecordIndex): Promise<Decision> {
    const { request, sources } = write
    const input = { index: current, file: sources.file, expand, randomUuid: context.randomUuid }
    const plan = await run(planSteps(request, createHybridPlanState(input)))
    if (plan.kind === 'refused') return { kind: 'decided', outcome: plan }
    const delta = await run(expectedDeltaSteps(plan, current, context.clock))
    const next = await run(indexUpdateSteps(current, delta, expand))
    try {
      const candidate = await activation.prepare(sources.file, next)
      if (!write.isOver && !request.dryRun && plan.changes.length > 0) {
        return { kind: 'activates', plan, candidate }
      }
      candidate.prepared.abort()
      return { kind: 'decided', outcome: outcomeOf(plan, next, candidate.overlaid.shadowed) }
    } catch (error) {
      if (!request.dryRun && removesProblem(plan, current) && isBlocked(next))
        return { kind: 'unblocks', plan }
      return { kind: 'decided', outcome: refusal(422, reasonsOf(error).join('\n')) }
    }
  }

  /**
   * Waits for the database outside the lock of reloads, which is acquired when the plan starts and released
   * after the commit: the configuration of the plan is the one the commit changes.
   */
  function storeChanges(write: Write): Promise<StoreDelta> {
    return store.write(write.sources.index.generation, async (since) => {
      const release = await enterExclusive(host)
      if (write.isOver) {
        release()
        return undefined
      }
      write.release = release
      const { index, file } = write.sources
      write.sources = { index: state.index ?? index, file: state.file ?? file }
      const current = await run(indexUpdateSteps(write.sources.index, since, expand))
      write.decision = await decide(write, current)
      const { decision } = write
      if (decision.kind !== 'activates' && decision.kind !== 'unblocks') return undefined
      // Records as of the plan, not of its result.
      return await run(storeChangeSteps(decision.plan, current, originOf(write)))
    })
  }

  function failed(write: Write, error: unknown): ChangeOutcome {
    write.isOver = true
    if (write.decision.kind === 'activates') write.decision.candidate.prepared.abort()
    if (!(error instanceof DatabaseUnavailable)) throw error
    connection.failed(error)
    // The commit may have succeeded.
    retry.schedule()
    return refusal(503, `config resources cannot be stored: ${error.message}`)
  }

  async function finish(write: Write, delta: StoreDelta, requester: Requester): Promise<ChangeOutcome> {
    const { decision, sources } = write
    const audit = (plan: Plan<ExistingRecord>, after: RecordIndex) =>
      run(auditSteps(plan, { before: sources.index, after }, requester, context.log))
    switch (decision.kind) {
      case 'pending':
      case 'decided':
        // The store does not announce a delta again after it was returned: a key deleted by another replica
        // would stay valid.
        await sync.apply(delta, sources.file)
        return decision.kind === 'decided' ? decision.outcome : refusal(500, 'nothing was decided')
      case 'unblocks':
        await sync.apply(delta, sources.file)
        await audit(decision.plan, state.index ?? sources.index)
        return outcomeOf(decision.plan, sources.index, new Set())
      case 'activates': {
        const { plan, candidate } = decision
        const own = new Set(
          plan.changes.flatMap((change) =>
            change.op === 'put' ? [recordKey(change.kind.name, change.id)] : [],
          ),
        )
        const index = await run(indexUpdateSteps(candidate.index, delta, expand, own))
        state.index = index
        await activation.activate({ ...candidate, index })
        await audit(plan, index)
        return outcomeOf(plan, index, candidate.overlaid.shadowed)
      }
    }
  }

  return async (request, requester) => {
    // A reload in progress ends before the lock of all writers is acquired.
    await host.exclusive(() => Promise.resolve())
    const { index, file } = state
    if (index === undefined || file === undefined) return refusal(503, notReadYet)
    const write: Write = {
      request,
      requester,
      sources: { index, file },
      decision: { kind: 'pending' },
      isOver: false,
      release: undefined,
    }
    try {
      const stored = await storeChanges(write).then(
        (delta) => ({ kind: 'stored' as const, delta }),
        (error: unknown) => failed(write, error),
      )
      if (!('delta' in stored)) return stored
      connection.succeeded()
      retry.reset()
      return await finish(write, stored.delta, requester)
    } finally {
      write.isOver = true
      write.release?.()
    }
  }
}

function originOf({ request: { change }, requester }: Write): HistoryOrigin {
  if (change.op === 'revert') return { ...requester, origin: 'revert', reverts: change.of }
  return { ...requester, origin: change.op === 'import' ? 'import' : 'write' }
}

/** Whether a plan only removes one unreadable record. */
function removesProblem({ changes }: Plan<ExistingRecord>, { problems }: RecordIndex): boolean {
  const [change, ...others] = changes
  if (change?.op !== 'remove' || others.length > 0) return false
  return problems.has(recordKey(change.kind.name, change.existing.id))
}

function isBlocked({ problems }: RecordIndex): boolean {
  return [...problems.values()].some(({ blocking }) => blocking)
}

/** Acquires the lock of reloads; resolves with its release. */
function enterExclusive(host: ResourceHost): Promise<() => void> {
  return new Promise((resolve) => {
    void host.exclusive(() => new Promise<void>((release) => resolve(release)))
  })
}

/** The delta that the store is expected to return after a plan. */
function* expectedDeltaSteps(
  { changes }: Plan<ExistingRecord>,
  index: RecordIndex,
  clock: Clock,
): Generator<void, StoreDelta> {
  const now = new Date(clock.now()).toISOString()
  const changed: StoredResource[] = []
  const removed: { kind: string; id: string }[] = []
  for (const change of changes) {
    yield
    const { kind } = change
    if (change.op === 'remove') {
      removed.push({ kind: kind.name, id: change.existing.id })
      continue
    }
    const { id, draft } = change
    const before = findRecord(index, kind, id)
    changed.push({
      kind: kind.name,
      id,
      value: toStored(kind, draft.name, draft.value),
      revision: (before?.revision ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
    })
  }
  return { changed, unreadable: [], removed, generation: index.generation, complete: false }
}

function outcomeOf(
  { changes }: Plan<ExistingRecord>,
  index: RecordIndex,
  shadowed: ReadonlySet<string>,
): ChangeOutcome {
  const [first] = changes
  if (first?.op === 'remove') return { kind: 'removed', id: first.existing.id }
  const resources = changes.flatMap((change) =>
    change.op === 'put' ? (findEnvelope(change.kind, change.id, index, shadowed) ?? []) : [],
  )
  return { kind: 'stored', resources }
}
