import type { Clock } from '../../../lib/clock.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { type AttemptRecord, recordAttempt, recordFailure } from '../../../pipeline/recording/recording.ts'
import type { Candidate } from '../models/candidate.ts'

/** Records the start of an attempt; undefined without an entry in the ledger. */
export function startRecord(
  { recording }: Exchange,
  { target, model }: Candidate,
  clock: Clock,
): AttemptRecord | undefined {
  if (recording === undefined) return undefined
  const fields = {
    target: target.configuredModel,
    provider: target.provider.name,
    model,
    session: undefined,
  }
  return recordAttempt(recording, fields, clock)
}

/** Marks an attempt whose request was not sent. */
export function recordSkip(record: AttemptRecord, code: string, clock: Clock): void {
  record.sent = false
  recordFailure(record, code, clock)
}

/** Records a candidate that is not tried in its turn, with the reason; for explanations only. */
export function recordSkipped(exchange: Exchange, candidate: Candidate, code: string, clock: Clock): void {
  if (exchange.recording?.times === undefined) return
  const record = startRecord(exchange, candidate, clock)
  if (record) recordSkip(record, code, clock)
}
