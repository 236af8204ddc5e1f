import type { Policy, Repetition } from '../../pipeline/policy.ts'

/**
 * Steps that apply again on an LLM connection that stays open. Authentication and rules on the request: after
 * a change of the configuration. Limits, budgets and rules on the call: each response is a call. Services
 * that authorize or process requests see the request of the connection only.
 */
const repetitions: Readonly<Record<string, Repetition>> = {
  tokens: 'credential',
  basicAuth: 'credential',
  apiKey: 'credential',
  authorization: 'credential',
  requestLimits: 'call',
  keyLimits: 'call',
  globalRequestLimits: 'call',
  llmRequest: 'call',
  llmAuthorization: 'call',
  modelAuthorization: 'call',
  tokenLimits: 'call',
  budgets: 'call',
  globalTokenLimits: 'call',
  guardrails: 'content',
}

/** Adds the policies of a step, and marks them if the step applies again. */
export function addRepeating(policies: Policy[], step: string, add: () => void): void {
  const repeats = repetitions[step]
  const first = policies.length
  add()
  if (repeats === undefined) return
  for (let index = first; index < policies.length; index += 1) {
    const policy = policies[index]
    if (policy !== undefined) policies[index] = { ...policy, repeats }
  }
}
