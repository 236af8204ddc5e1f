import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest } from '../translate.ts'
import { toContents } from './contents.ts'
import { googleExtension, isGemini3, toGenerationConfig } from './generation-config.ts'
import { toToolConfig, toTools } from './tools.ts'

/**
 * Translates a chat completions request to a `generateContent` request. Path and query have model and
 * streaming.
 */
export function chatToGeminiRequest(body: JsonObject): TranslatedRequest {
  const refusals = createRefusals('Gemini')
  refusals.addUnknown(body, translatedFields, '')
  refuseUntranslatable(body, refusals)
  const model = typeof body.model === 'string' ? body.model : ''
  const { system, contents } = toContents(body.messages, { requiresSignatures: isGemini3(model), refusals })
  const google = googleExtension(body)
  const translated: JsonObject = { contents }
  const set = (name: string, value: JsonValue | undefined) => {
    if (!isAbsent(value)) translated[name] = value
  }
  set('systemInstruction', system.length === 0 ? undefined : { parts: system })
  const tools = toTools(body.tools, refusals)
  set('tools', tools)
  set('toolConfig', toToolConfig(body.tool_choice, refusals))
  set('generationConfig', toGenerationConfig(body, model, refusals))
  set('safetySettings', google.safety_settings ?? body.safetySettings ?? body.safety_settings)
  set('cachedContent', google.cached_content ?? body.cachedContent ?? body.cached_content)
  set('labels', body.labels)
  if (tools !== undefined && body.parallel_tool_calls === false && !forcesOneTool(body))
    refusals.add(
      'parallel_tool_calls',
      'Gemini calls several tools at once unless tool_choice forces one of them',
    )
  return refusals.result(translated)
}

/** Structured output of clients: the response is the call of one tool. */
function forcesOneTool({ tools, tool_choice: choice }: JsonObject): boolean {
  return isJsonObject(choice) || (choice === 'required' && Array.isArray(tools) && tools.length === 1)
}

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'response_format'],
  ...['reasoning_effort', 'max_tokens', 'max_completion_tokens', 'stop', 'stream', 'stream_options'],
  ...[
    'temperature',
    'top_p',
    'n',
    'seed',
    'presence_penalty',
    'frequency_penalty',
    'logprobs',
    'top_logprobs',
  ],
  ...['modalities'],
  // Fields of Gemini that chat clients may add.
  ...['top_k', 'extra_body', 'thinkingConfig', 'thinking_config', 'safetySettings', 'safety_settings'],
  ...['cachedContent', 'cached_content', 'labels'],
  // Accepted only with a value that has no effect.
  ...['logit_bias', 'verbosity'],
  // Hints without effect on the content of the response: storage, caching, price and speed.
  ...['user', 'safety_identifier', 'service_tier', 'store', 'metadata', 'prediction'],
  ...['prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options'],
])

const extensionFields: ReadonlySet<string> = new Set(['google'])
const googleFields: ReadonlySet<string> = new Set(['thinking_config', 'cached_content', 'safety_settings'])

/** Refuses fields without a counterpart unless their value equals the default behaviour. */
function refuseUntranslatable(body: JsonObject, refusals: Refusals): void {
  const { verbosity, logit_bias: logitBias, extra_body: extra } = body
  if (!isAbsent(logitBias) && !(isJsonObject(logitBias) && Object.keys(logitBias).length === 0))
    refusals.add('logit_bias', 'cannot be translated for Gemini')
  if (!isAbsent(verbosity) && verbosity !== 'medium')
    refusals.add('verbosity', 'only medium, the default, can be translated for Gemini')
  if (isAbsent(extra)) return
  if (isJsonObject(extra)) refusals.addUnknown(extra, extensionFields, 'extra_body')
  refusals.addUnknown(googleExtension(body), googleFields, 'extra_body.google')
}
