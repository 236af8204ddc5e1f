import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import type { Candidate } from '../models/candidate.ts'
import type { Provider } from '../providers/provider.ts'
import type { AnthropicSettings } from '../request/anthropic-settings.ts'
import type { Call } from '../request/call.ts'
import type { Endpoint } from '../request/endpoints.ts'

type Edits = { readonly set: Map<string, string>; readonly remove: Set<string> }

/** Edits version and betas of Anthropic's API in the body: only clouds read them there. */
export function setAnthropicFields(
  { value }: JsonText,
  { endpoint, anthropic }: Call,
  { anthropicBetas: accepted }: Provider,
  { set, remove }: Edits,
): void {
  const isCloud = set.has('anthropic_version')
  const isAnthropic = endpoint === 'messages' || endpoint === 'count_tokens'
  if (isAnthropic && !isCloud && Object.hasOwn(value, 'anthropic_version')) remove.add('anthropic_version')
  if (anthropic === undefined || !isAnthropic) return
  const { version } = anthropic
  if (version !== undefined && isCloud) set.set('anthropic_version', JSON.stringify(version))
  if (accepted === undefined || set.has('anthropic_beta') || Object.hasOwn(value, 'anthropic_beta')) return
  const sent = acceptedOf(anthropic, accepted)
  if (sent.length > 0) set.set('anthropic_beta', JSON.stringify(sent))
}

/**
 * Sets betas in the body of a translated call, for a model of Anthropic in a cloud that reads them there. The
 * Converse API passes them on to the model.
 */
export function setTranslatedBetas(
  body: JsonObject,
  { anthropic }: Call,
  upstream: Endpoint,
  { target: { provider }, model }: Candidate,
): void {
  const { anthropicBetas } = provider
  if (anthropic === undefined || anthropicBetas === undefined) return
  const sent = acceptedOf(anthropic, anthropicBetas)
  if (sent.length === 0) return
  if (upstream === 'messages') body['anthropic_beta'] ??= sent
  if (upstream !== 'converse' || provider.isAnthropicModel?.(model) !== true) return
  const { additionalModelRequestFields: given } = body
  const others = isJsonObject(given) ? given : {}
  body['additionalModelRequestFields'] = { anthropic_beta: sent, ...others }
}

/** Betas of a body are the choice of its author; those of a header are reduced to documented ones. */
function acceptedOf({ betas, source }: AnthropicSettings, accepted: ReadonlySet<string>): string[] {
  return source === 'body' ? [...betas] : betas.filter((beta) => accepted.has(beta))
}
