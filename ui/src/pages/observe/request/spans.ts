import type { Explanation } from '../../../api/ledger/explanation.ts'
import type { LogEntry } from '../../../api/ledger/log-entry.ts'

/** A bar of the waterfall. Milliseconds from the start of the request. */
export type Span = {
  readonly label: string
  readonly note?: string
  readonly startMs: number
  readonly endMs: number
  /** Time at which the response started, within the span. */
  readonly markMs?: number
  readonly tone: 'gateway' | 'upstream' | 'failed' | 'stream'
  /** Part of the span before. */
  readonly isPart?: boolean
}

/** Phases of a request in order of their start. Phases that did not take place are absent. */
export function spansOf(entry: LogEntry, explanation: Explanation | null): readonly Span[] {
  const times = explanation?.times
  if (times === undefined) return spansOfEntry(entry)
  const { policiesMs, backendMs, replyMs, firstByteMs, streamMs, totalMs } = times
  const spans: Span[] = []
  if (policiesMs !== undefined) {
    spans.push({ label: 'Policies', startMs: 0, endMs: policiesMs, tone: 'gateway' })
    spans.push(...partsOf(times.waits ?? [], policiesMs))
  }
  for (const attempt of explanation?.attempts ?? []) {
    const { target, outcome, startMs, durationMs } = attempt
    if (startMs === undefined || durationMs === undefined || outcome === 'skipped') continue
    spans.push({
      label: target,
      note: attempt.failure ?? (attempt.status === undefined ? outcome : `status ${attempt.status}`),
      startMs,
      endMs: startMs + durationMs,
      ...(attempt.firstByteMs === undefined ? {} : { markMs: startMs + attempt.firstByteMs }),
      tone: outcome === 'responded' ? 'upstream' : 'failed',
    })
  }
  const replyAt = (policiesMs ?? 0) + (backendMs ?? 0)
  if (replyMs !== undefined && backendMs !== undefined)
    spans.push({
      label: 'Policies on the response',
      startMs: replyAt,
      endMs: replyAt + replyMs,
      tone: 'gateway',
    })
  if (firstByteMs !== undefined)
    spans.push({
      label: 'Response to the client',
      startMs: firstByteMs,
      endMs: firstByteMs + (streamMs ?? Math.max(0, totalMs - firstByteMs)),
      tone: 'stream',
    })
  return spans
}

/** Steps that waited follow each other; their start is not recorded. */
function partsOf(waits: readonly { step: string; ms: number }[], policiesMs: number): Span[] {
  const total = waits.reduce((sum, { ms }) => sum + ms, 0)
  if (total > policiesMs) return []
  let startMs = 0
  return waits
    .filter(({ ms }) => ms > 0)
    .map(({ step, ms }) => {
      const span: Span = { label: step, startMs, endMs: startMs + ms, tone: 'gateway', isPart: true }
      startMs += ms
      return span
    })
}

function spansOfEntry({ durationMs, firstByteMs }: LogEntry): readonly Span[] {
  if (firstByteMs === null) return [{ label: 'Request', startMs: 0, endMs: durationMs, tone: 'gateway' }]
  return [
    { label: 'Until the first byte', startMs: 0, endMs: firstByteMs, tone: 'upstream' },
    { label: 'Response to the client', startMs: firstByteMs, endMs: durationMs, tone: 'stream' },
  ]
}
