import type { JsonObject } from '../lib/json/json.ts'
import { compileJsonNames, type FindAmbiguousName, type FreeRule } from '../lib/json/names.ts'

/** Input of a tool call is free JSON; `input` of a request is not, regardless of its `type`. */
const isToolCall = ({ type }: JsonObject): boolean => typeof type === 'string' && type.endsWith('tool_use')

const free = {
  $defs: 'free',
  arguments: 'free',
  attributes: 'free',
  chat_template_kwargs: 'free',
  configs: 'map',
  definitions: 'free',
  documents: 'free',
  env: 'free',
  extra_body: 'free',
  extra_headers: 'free',
  guided_json: 'free',
  headers: 'free',
  input: isToolCall,
  input_examples: 'free',
  input_schema: 'free',
  json_schema: 'free',
  litellm_metadata: 'free',
  logit_bias: 'free',
  logprobs: 'free',
  metadata: 'free',
  output_schema: 'free',
  parameters: 'free',
  prompt_logprobs: 'free',
  properties: 'free',
  response_json_schema: 'free',
  response_schema: 'free',
  schema: 'free',
  structured_outputs: 'free',
  variables: 'map',
} satisfies Record<string, FreeRule>

/** Names at the top of a request, of any of the client APIs. */
const requestFields = `
  audio background best_of betas cache_control container context_management conversation dimensions echo
  encoding_format fallbacks frequency_penalty function_call functions include include_obfuscation include_usage
  instructions max_completion_tokens max_output_tokens max_tokens max_tool_calls mcp_servers messages
  min_p modalities model models moderation n negative_prompt num_ctx num_predict options output_config output_format
  parallel_tool_calls prediction presence_penalty previous_response_id prompt prompt_cache_key prompt_cache_options
  prompt_cache_retention provider reasoning reasoning_effort repetition_penalty response_format safety_identifier seed
  service_tier speed stop stop_sequences store stream stream_options suffix system temperature text thinking tool_choice
  tools top_k top_logprobs top_n top_p transforms truncation user user_id verbosity voice web_search_options`

/** Names inside messages, items, content parts, tools and streamed events. */
const contentFields = `
  action actions allowed_callers allowed_tools annotations approve authorization budget_tokens call_id choices citations
  cited_text code command commands content content_block context custom data definition delta description detail
  effort enabled encrypted_content error event file file_data file_id file_url filename format function grammar id image
  image_url index input_audio input_image input_text instructions is_error item keep lines logs max_uses
  media_type message mode name namespace namespaces output output_index output_text outputs part parts partial_json
  phase query queries reason reasoning_content reasoning_details refusal required require_approval response result results
  role server_label server_name server_url signature source sources stderr stdout strict summary syntax text thinking
  title token tool tool_call_id tool_calls tool_name tool_references tool_use_id transcript type url usage value
  video_url`

const names = (text: string): string[] => text.trim().split(/\s+/)

/** Finds names in a call or response of a known API that lenient readers interpret as others. */
export const findAmbiguousLlmName: FindAmbiguousName = compileJsonNames({
  fields: [...names(requestFields), ...names(contentFields)],
  free,
})

/** Names of Cohere's chat that other APIs do not have. */
const cohereFields = `
  citation_options k p priority safety_mode strict_tools token_budget tool_plan`

/** Names of events of realtime. */
const realtimeFields = `
  audio_end_ms conversation create_response eagerness event_id expires_after idle_timeout_ms input_audio_format
  input_audio_noise_reduction input_audio_transcription interrupt_response item item_id language max_response_output_tokens
  noise_reduction object output_audio_format output_modalities prefix_padding_ms previous_item_id rate response_id
  session silence_duration_ms threshold tracing transcription turn_detection`

/**
 * The same for `/v2/chat` of Cohere and its responses, whose documents and results of tools are free JSON.
 */
export const findAmbiguousCohereName: FindAmbiguousName = compileJsonNames({
  fields: [...names(requestFields), ...names(contentFields), ...names(cohereFields)],
  free: { ...free, document: 'free', tool_output: 'free' },
})

/** The same for events of realtime. */
export const findAmbiguousRealtimeName: FindAmbiguousName = compileJsonNames({
  fields: [...names(requestFields), ...names(contentFields), ...names(realtimeFields)],
  free,
})

/** Names of Google's `generateContent`, which are read in camel case and in snake case. */
const geminiFields = `
  blockReason cachedContent candidateCount candidates code codeExecutionResult contents content executableCode fileData fileUri
  finishMessage finishReason functionCall functionCallingConfig functionDeclarations functionResponse generationConfig
  id index inlineData maxOutputTokens mimeType model name output parts promptFeedback responseMimeType
  outputDimensionality requests role safetySettings systemInstruction taskType text thinkingConfig thought thoughtSignature toolConfig tools usageMetadata
  output_dimensionality task_type
  cached_content candidate_count code_execution_result executable_code file_data file_uri function_call
  function_calling_config function_declarations function_response generation_config inline_data max_output_tokens mime_type
  response_mime_type safety_settings system_instruction thinking_config thought_signature tool_config`

/** Result of a function: an object with the name of the function. */
const isFunctionResponse = ({ name }: JsonObject): boolean => typeof name === 'string'

/** The same for calls of Google's `generateContent` and their responses. */
export const findAmbiguousGeminiName: FindAmbiguousName = compileJsonNames({
  fields: names(geminiFields),
  free: {
    args: 'free',
    labels: 'free',
    parameters: 'free',
    parametersJsonSchema: 'free',
    parameters_json_schema: 'free',
    response: isFunctionResponse,
    responseJsonSchema: 'free',
    responseSchema: 'free',
    response_json_schema: 'free',
    response_schema: 'free',
  },
})

/** Names of the Converse API of Amazon Bedrock. */
const converseFields = `
  additionalModelRequestFields additionalModelResponseFieldPaths any auto bytes cachePoint citation citations citationsContent
  content contentBlockIndex context delta document enabled error format guardContent guardrailConfig guardrailIdentifier
  guardrailVersion image inferenceConfig inputSchema jsonSchema latency location maxTokens message messages
  metrics name output outputConfig p performanceConfig promptVariables qualifiers reasoningContent reasoningText redactedContent
  requestMetadata role s3Location schema searchResult searchResultIndex serviceTier signature source sourceContent start
  status stopReason stopSequences streamProcessingMode structure system systemTool temperature text textFormat title
  tool toolChoice toolConfig toolResult toolSpec toolUse toolUseId tools topP type uri usage video`

/** The same for the Converse API and its responses. */
export const findAmbiguousConverseName: FindAmbiguousName = compileJsonNames({
  fields: names(converseFields),
  free: {
    additionalModelRequestFields: 'free',
    additionalModelResponseFields: 'free',
    input: 'free',
    json: 'free',
    promptVariables: 'map',
    requestMetadata: 'free',
    trace: 'free',
  },
})

/** The same for a passthrough call: only the members that rules and model selection read have known names. */
export const findAmbiguousTopName: FindAmbiguousName = compileTopNames()

function compileTopNames(): FindAmbiguousName {
  const find = compileJsonNames({ fields: [...names(requestFields), ...Object.keys(free)], free: {} })
  return (value) => find(Object.fromEntries(Object.keys(value).map((name) => [name, null])))
}

/**
 * The same for bodies and chunks of `InvokeModel`. Messages of Anthropic have known names everywhere; the API
 * of other bodies is that of their vendor, whose tools have inputs of their own.
 */
export const findAmbiguousInvokeName: FindAmbiguousName = (body) =>
  Object.hasOwn(body, 'anthropic_version') ? findAmbiguousLlmName(body) : findAmbiguousTopName(body)
