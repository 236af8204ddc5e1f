import { tryEvaluate } from '../cel/cel.ts'
import { checkCel, compileCheckedCel } from '../cel/checked.ts'
import type { Cancellation } from '../lib/cancellation.ts'
import { parseDuration } from '../lib/duration.ts'
import { GatewayError } from '../lib/gateway-error.ts'
import type { Facts } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'
import { type Infer, name, object } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

/** `delay`: injected latency. */
export const delaySchema = object(
  {
    duration: name({
      doc: 'Duration, or an expression with a duration or a number of milliseconds as value. 0, negative values and failed evaluations cause no delay. At most one hour.',
      example: 'random() < 0.1 ? 2000 : 0',
    }),
  },
  {
    doc: 'Delays requests before they are forwarded, to test clients. The delay counts as time of the request.',
  },
)

export type DelayConfig = Infer<typeof delaySchema>

const maxDelayMs = 3_600_000

/** The expression of a delay with its path; none for a fixed duration. */
export function expressionsOfDelay({ duration }: DelayConfig) {
  return parseDuration(duration) === undefined ? [{ source: duration, path: ['duration'] }] : []
}

/** Reports an invalid expression. */
export function checkDelay(config: DelayConfig, variables: ReadonlySet<string>, report: ReportIssue): void {
  for (const { source, path } of expressionsOfDelay(config))
    checkCel(source, variables, (message) => report(path, message))
}

/** Compiles the delay before the backend. It ends if the client disconnects. */
export function compileDelay({ duration }: DelayConfig, variables: ReadonlySet<string>): Policy {
  const fixed = parseDuration(duration)
  const millisecondsOf = fixed === undefined ? compileDuration(duration, variables) : () => fixed
  return {
    name: 'delay',
    onRequest({ facts, cancellation }) {
      const delayMs = Math.min(millisecondsOf(facts), maxDelayMs)
      return delayMs > 0 ? wait(delayMs, cancellation) : undefined
    },
    explain: () => ({ duration }),
  }
}

function compileDuration(source: string, variables: ReadonlySet<string>): (facts: Facts) => number {
  const program = compileCheckedCel(source, variables)
  return (facts) => {
    const result = tryEvaluate(program, facts)
    return result.kind === 'value' ? millisecondsOfValue(result.value) : 0
  }
}

/** A duration is the JSON text of seconds: `1.5s`. */
function millisecondsOfValue(value: unknown): number {
  if (typeof value === 'number') return value
  const [, seconds] = typeof value === 'string' ? (/^(\d+(?:\.\d+)?)s$/.exec(value) ?? []) : []
  return seconds === undefined ? 0 : Number(seconds) * 1000
}

function wait(delayMs: number, cancellation: Cancellation): Promise<undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), delayMs)
    cancellation.onCancel(() => {
      clearTimeout(timer)
      reject(new GatewayError('request_aborted', 'the client closed the connection'))
    })
  })
}
