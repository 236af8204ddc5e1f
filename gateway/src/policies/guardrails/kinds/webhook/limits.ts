/** Connection limits of webhooks, shared by all guards (specification, "Limits"). */
export type WebhookLimits = {
  /** Maximum concurrent connections per server; 0 for no limit. */
  readonly maxConnections: number
  /** Idle timeout of a connection. */
  readonly keepAliveMs: number
}

const defaultMaxConnections = 100
const defaultKeepAliveSeconds = 300
/** Maximum of timers in Node.js: longer ones fire immediately. */
const maxKeepAliveSeconds = 2_147_483

type Environment = Readonly<Record<string, string | undefined>>

/** Reads the limits from the environment. Throws with the name of a variable that is not a number. */
export function webhookLimits(environment: Environment): WebhookLimits {
  const maxConnections = numberIn(environment, 'GUARDRAIL_WEBHOOK_MAX_CONNECTIONS', defaultMaxConnections)
  const seconds = numberIn(environment, 'GUARDRAIL_WEBHOOK_KEEPALIVE_SECONDS', defaultKeepAliveSeconds)
  // 0 seconds disables reuse; 1 ms is the minimum keep-alive.
  return { maxConnections, keepAliveMs: Math.max(1, Math.min(seconds, maxKeepAliveSeconds) * 1000) }
}

function numberIn(environment: Environment, name: string, otherwise: number): number {
  const text = environment[name]
  if (text === undefined || text === '') return otherwise
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new Error(`${name} must be a whole number from 0 on, got "${text}"`)
}
