/** What holds for the connections to webhooks, whichever guard they are for. Specification, "Limits". */
export type WebhookLimits = {
  /** To one server at once; 0 for any number. */
  readonly maxConnections: number
  /** How long an unused connection stays open. */
  readonly keepAliveMs: number
}

const defaultMaxConnections = 100
const defaultKeepAliveSeconds = 300
/** A timer set for longer would fire at once. */
const maxKeepAliveSeconds = 2_147_483

type Environment = Readonly<Record<string, string | undefined>>

/** Reads the limits from the environment. Throws with the name of a variable that is no number. */
export function webhookLimits(environment: Environment): WebhookLimits {
  const maxConnections = numberIn(environment, 'GUARDRAIL_WEBHOOK_MAX_CONNECTIONS', defaultMaxConnections)
  const seconds = numberIn(environment, 'GUARDRAIL_WEBHOOK_KEEPALIVE_SECONDS', defaultKeepAliveSeconds)
  // The connection of 0 seconds is one that is not kept, for which the least that can be said is a millisecond.
  return { maxConnections, keepAliveMs: Math.max(1, Math.min(seconds, maxKeepAliveSeconds) * 1000) }
}

function numberIn(environment: Environment, name: string, otherwise: number): number {
  const text = environment[name]
  if (text === undefined || text === '') return otherwise
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new Error(`${name} must be a whole number from 0 on, got "${text}"`)
}
