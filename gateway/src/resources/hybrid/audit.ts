import type { Log } from '../../telemetry/log.ts'
import { changedFields } from '../change/audit.ts'
import type { ExistingRecord, Plan } from '../change/plan.ts'
import type { Requester } from '../resources.ts'
import { findEnvelope } from './envelope.ts'
import type { RecordIndex } from './record-index.ts'

const noRecords: ReadonlySet<string> = new Set()

/** Steps that log each changed record: requester, operation and fields, without secrets. */
export function* auditSteps(
  { changes }: Plan<ExistingRecord>,
  { before, after }: { before: RecordIndex; after: RecordIndex },
  requester: Requester,
  log: Log,
): Generator<void> {
  for (const change of changes) {
    yield
    const { op, kind } = change
    const id = change.op === 'put' ? change.id : change.existing.id
    const old = findEnvelope(kind, id, before, noRecords)
    const now = findEnvelope(kind, id, after, noRecords)
    const { revision } = now ?? old ?? {}
    const changed = changedFields({ kind, name: now?.name ?? old?.name }, old?.value, now?.value)
    const fields = changed.map(({ field }) => field)
    log.audit({ op, kind: kind.name, id, revision, fields, changed, ...requester }, 'config resource changed')
  }
}

/** Lines for one cause: with another encryption key, every record is a problem. */
const maxLoggedRecords = 20

export function logShadowed(
  now: ReadonlySet<string>,
  before: ReadonlySet<string> | undefined,
  log: Log,
): void {
  const added = [...now].filter((record) => before?.has(record) !== true)
  for (const record of added.slice(0, maxLoggedRecords)) {
    log.warn({ record }, 'stored config resource not active: the file has the same entry')
  }
  if (added.length > maxLoggedRecords) {
    log.warn({ records: added.length }, 'stored config resources not active, list truncated')
  }
}

export function logProblems({ problems }: RecordIndex, before: RecordIndex | undefined, log: Log): void {
  if (problems === before?.problems) return
  const added = [...problems].filter(([key]) => before?.problems.has(key) !== true)
  for (const [, { kind, id, reason }] of added.slice(0, maxLoggedRecords)) {
    log.error({ kind: kind.slice(0, 100), id, reason }, 'stored config resource not usable')
  }
  if (added.length > maxLoggedRecords) {
    log.error({ records: added.length }, 'stored config resources not usable, list truncated')
  }
}
