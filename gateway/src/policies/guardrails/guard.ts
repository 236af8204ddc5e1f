import type { Headers } from '../../net/http/headers.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { GuardMeter } from '../../telemetry/metrics/rules-and-guards.ts'
import type { ContentScope } from './content/scopes/content-scope.ts'

/** Direction of checked content: to the model or from it. */
export type Phase = 'request' | 'response'

/** Text passed to a guard. */
export type GuardText = { readonly role: string; readonly content: string }

/** Input of a check. */
export type CheckInput = {
  readonly texts: readonly GuardText[]
  readonly exchange: Exchange
  /** Header fields of the model's response, in the response phase. */
  readonly replyHeaders: Headers | undefined
}

/** Response to a request that a guard rejects. */
export type Rejection = { readonly status: number; readonly body: string; readonly headers: Headers }

/** Verdict of a guard. `reason` is logged and must not contain content. */
export type Verdict =
  | { readonly kind: 'allow'; readonly reason?: string | undefined }
  /** One content per text of the input, in the same order. */
  | { readonly kind: 'modify'; readonly contents: readonly string[]; readonly reason?: string | undefined }
  | { readonly kind: 'reject'; readonly rejection: Rejection; readonly reason?: string | undefined }

/** Check of a guard. Any error thrown counts as a failed check. */
export type Check = (question: CheckInput) => Verdict | Promise<Verdict>

/** Compiled guard kind. */
export type CompiledKind = {
  readonly check: Check
  /** Verdicts are recorded without effect. */
  readonly audit: boolean
  /** A failed check allows the content. */
  readonly failOpen: boolean
}

/** Guard of a scope. */
export type Guard = CompiledKind & {
  /** Label in metrics and logs, from the configuration. */
  readonly name: string
  /** Content of unknown type does not fail the check. */
  readonly allowsUnknown: boolean
  /** Undefined for the texts that guards receive by default. */
  readonly scopes: ReadonlySet<ContentScope> | undefined
  readonly meter: GuardMeter
}

/** Failure of a check, with a short reason without content for logs. */
export class CheckFailure extends Error {
  constructor(reason: string, options?: { cause?: unknown }) {
    super(reason, options)
    this.name = 'CheckFailure'
  }
}
