import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Usage } from '../../../pipeline/exchange.ts'
import type { Attempt } from '../request/call.ts'
import type { Endpoint } from '../request/endpoints.ts'
import type { TranslationContext } from '../translate/translate.ts'

/** Records usage reported by the provider. */
export function recordUsage(attempt: Attempt, usage: Usage): void {
  attempt.usage = usage
  attempt.exchange.facts.usage = usage
}

/**
 * Records the model in the provider's response; undefined leaves it unchanged, as in the last event of
 * messages.
 */
export function recordModel({ exchange: { facts } }: Attempt, model: string | undefined): void {
  if (facts.llm && model !== undefined) facts.llm.responseModel = model
}

/** The provider's endpoint of a translated call: the other of the two chat APIs. */
export function translatedEndpoint(endpoint: Endpoint): Endpoint {
  return endpoint === 'chat' ? 'messages' : 'chat'
}

export function translationContext(
  { exchange, call }: Attempt,
  { clock }: CompileContext,
): TranslationContext {
  return {
    requestModel: exchange.facts.llm?.requestModel ?? '',
    now: () => clock.now(),
    includeUsage: !call.hideUsage,
  }
}
