import type { JsonText } from '../../../lib/json/text.ts'
import type { Provider } from '../providers/provider.ts'
import type { Call } from '../request/call.ts'

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
  if (anthropic === undefined) return
  const { version, betas, source } = anthropic
  if (version !== undefined && isCloud) set.set('anthropic_version', JSON.stringify(version))
  if (accepted === undefined || set.has('anthropic_beta') || Object.hasOwn(value, 'anthropic_beta')) return
  const sent = source === 'body' ? betas : betas.filter((beta) => accepted.has(beta))
  if (sent.length > 0) set.set('anthropic_beta', JSON.stringify(sent))
}
