import type { Headers } from '../../net/http/headers.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { GuardMeter } from '../../telemetry/metrics/policies.ts'

/** What is checked: what goes to a model, or what comes from it. */
export type Phase = 'request' | 'response'

/** One text as a guard sees it. */
export type GuardText = { readonly role: string; readonly content: string }

/** What a guard is asked. */
export type CheckInput = {
  readonly texts: readonly GuardText[]
  readonly exchange: Exchange
  /** Header fields of the model's answer, in the response phase. */
  readonly replyHeaders: Headers | undefined
}

/** The answer to a request that a guard rejects. */
export type Rejection = { readonly status: number; readonly body: string; readonly headers: Headers }

/** What a guard says. `reason` is for the log and must not repeat content. */
export type Verdict =
  | { readonly kind: 'allow'; readonly reason?: string | undefined }
  /** One content for each text that was shown, in their order. */
  | { readonly kind: 'modify'; readonly contents: readonly string[]; readonly reason?: string | undefined }
  | { readonly kind: 'reject'; readonly rejection: Rejection; readonly reason?: string | undefined }

/** Asks a guard. Whatever it throws counts as a check that failed. */
export type Check = (question: CheckInput) => Verdict | Promise<Verdict>

/** What a kind of guard compiles to. */
export type CompiledKind = {
  readonly check: Check
  /** Verdicts are noted, and have no effect. */
  readonly audit: boolean
  /** A check that fails lets the content pass. */
  readonly failOpen: boolean
}

/** A guard at its place. */
export type Guard = CompiledKind & {
  /** Label in metrics and logs, from the configuration. */
  readonly name: string
  /** Content of unknown type does not fail the check. */
  readonly allowsUnknown: boolean
  readonly meter: GuardMeter
}

/** Why a check could not be made, in a few words without content, for logs. */
export class CheckFailure extends Error {
  constructor(reason: string, options?: { cause?: unknown }) {
    super(reason, options)
    this.name = 'CheckFailure'
  }
}
