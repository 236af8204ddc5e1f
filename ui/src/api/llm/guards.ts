import { api } from '../client.ts'

/** Outcome of a text for guards. */
export type GuardTrial = {
  readonly outcome: 'passed' | 'masked' | 'rejected' | 'failed'
  /** The text after the guards. */
  readonly text?: string
  readonly rejection?: { readonly status: number; readonly body?: string }
  readonly guards: readonly {
    readonly name: string
    readonly outcome: string
    readonly reason?: string
    readonly ms: number
  }[]
}

export type GuardTrialRequest = {
  /** Value of `llm.policies.guardrails`. */
  readonly guards: unknown
  readonly text: string
  readonly direction: 'request' | 'response'
}

/**
 * Tries guards on a text, without a request to a model. `permitsNew` permits webhooks that are not saved yet,
 * which needs the right to change.
 */
export function testGuards(request: GuardTrialRequest, permitsNew: boolean): Promise<GuardTrial> {
  const query = permitsNew ? { newTargets: true } : {}
  return api<GuardTrial>('/api/guards/test', { method: 'POST', body: request, query })
}
