import { longestTimerMs, parseDuration } from '../../lib/duration.ts'
import { duration, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'

const defaultDeadlineMs = 25_000

/** Fields of `config` about the end of the process. */
export const terminationFields = {
  connectionTerminationDeadline: optional(
    duration({ doc: 'How long requests in flight may take after a stop signal.', default: '25s' }),
  ),
  connectionMinTerminationDeadline: optional(
    duration({
      doc: 'How long new connections are accepted after a stop signal, for load balancers that learn of it later. It is part of `connectionTerminationDeadline`.',
      default: '0s',
      advanced: true,
    }),
  ),
}

/** The fields that matter here. */
type Settings = { readonly [K in keyof typeof terminationFields]?: string | undefined }

/** Limits on the end of the process. */
export type Termination = {
  /** How long new connections are accepted after a stop signal. */
  readonly acceptMs: number
  /** How long pending requests may take after that. */
  readonly drainMs: number
}

/** Limits of a kind of process; undefined for those of a gateway. */
type Defaults = { readonly [K in keyof Termination]?: Termination[K] | undefined }

/** Reports a deadline that ends before the gateway stops accepting. Paths are relative to `config`. */
export function checkTermination(settings: Settings, report: ReportIssue): void {
  const { connectionMinTerminationDeadline: least, connectionTerminationDeadline } = settings
  if (least === undefined) return
  const deadlineMs = millisecondsOf(connectionTerminationDeadline, defaultDeadlineMs)
  if (millisecondsOf(least, 0) > deadlineMs)
    report(
      ['connectionMinTerminationDeadline'],
      `must be at most connectionTerminationDeadline (${connectionTerminationDeadline ?? '25s'})`,
    )
}

/** Limits of a configuration, with the defaults of the kind of process. */
export function terminationOf(
  settings: Settings,
  { acceptMs = 0, drainMs = defaultDeadlineMs }: Defaults,
): Termination {
  const leastMs = millisecondsOf(settings.connectionMinTerminationDeadline, 0)
  const deadlineMs = millisecondsOf(settings.connectionTerminationDeadline, drainMs)
  return {
    acceptMs: Math.min(Math.max(acceptMs, leastMs), longestTimerMs),
    drainMs: Math.min(Math.max(deadlineMs - leastMs, 0), longestTimerMs),
  }
}

function millisecondsOf(text: string | undefined, defaultMs: number): number {
  return text === undefined ? defaultMs : (parseDuration(text) ?? 0)
}
