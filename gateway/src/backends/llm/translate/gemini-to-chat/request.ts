import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest } from '../translate.ts'
import { toChatMessages } from './contents.ts'
import type { ChatDialect } from './dialect.ts'
import { camelCased } from './fields.ts'
import { fromGenerationConfig, includesThoughts } from './generation-config.ts'
import { toChatTools } from './tools.ts'

/**
 * Translates a `generateContent` request to a chat completions request. `model` and `stream` are those of its
 * path.
 */
export function geminiToChatRequest(given: JsonObject, dialect: ChatDialect): TranslatedRequest {
  const refusals = createRefusals(dialect.upstream)
  const body = camelCased(given)
  refusals.addUnknown(body, translatedFields, '')
  refuseState(body, refusals)
  const options = { dialect, refusals }
  const { tools, choice } = toChatTools(body, refusals)
  const translated: JsonObject = {
    model: body.model ?? '',
    messages: toChatMessages(body, options),
    ...fromGenerationConfig(body.generationConfig, options),
  }
  setIfPresent(translated, 'tools', tools)
  setIfPresent(translated, 'tool_choice', choice)
  // The last event of a stream contains the token counts, which chat streams report on request only.
  if (body.stream === true)
    Object.assign(translated, { stream: true, stream_options: { include_usage: true } })
  const result = refusals.result(translated)
  if (result.kind === 'unsupported') return result
  return { ...result, settings: { includeThoughts: includesThoughts(body.generationConfig, options) } }
}

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'stream', 'contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig'],
  // Filters of Google; those of other providers apply.
  'safetySettings',
  // Hints without effect on the content of the response: billing, storage, price.
  ...['labels', 'store', 'serviceTier'],
  // Refused with a reason of its own.
  'cachedContent',
])

function refuseState({ cachedContent }: JsonObject, refusals: Refusals): void {
  if (!isAbsent(cachedContent) && cachedContent !== '')
    refusals.add('cachedContent', 'caches exist at Google only: send the whole conversation in contents')
}

function setIfPresent(body: JsonObject, name: string, value: JsonValue | undefined): void {
  if (!isAbsent(value)) body[name] = value
}
