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

/** Tries guards on a text, without a request to a model. */
export function testGuards(request: GuardTrialRequest): Promise<GuardTrial> {
  return api<GuardTrial>('/api/guards/test', { method: 'POST', body: request })
}
