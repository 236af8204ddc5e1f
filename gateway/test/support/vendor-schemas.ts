import { z } from 'zod'

/**
 * Answers as the vendors publish them, strict: a member that is not listed, or null where the vendor has no
 * null, fails. Sources: the types of the packages `openai` and `@anthropic-ai/sdk`, and the API references
 * they are made from. Clients with schemas of their own reject such members, for example `citations: null`.
 */
const count = z.int().min(0)
const nothing = z.null()

const chatUsage = z.strictObject({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z
    .strictObject({
      cached_tokens: count.optional(),
      cache_write_tokens: count.optional(),
      audio_tokens: count.optional(),
    })
    .optional(),
  completion_tokens_details: z
    .strictObject({
      reasoning_tokens: count.optional(),
      audio_tokens: count.optional(),
      accepted_prediction_tokens: count.optional(),
      rejected_prediction_tokens: count.optional(),
    })
    .optional(),
})

const probability = { token: z.string(), logprob: z.number(), bytes: z.array(count).nullable() }
const probabilities = z.strictObject({
  content: z.array(z.strictObject({ ...probability, top_logprobs: z.array(z.strictObject(probability)) })),
  refusal: nothing,
})
const urlCitation = z.strictObject({
  start_index: count,
  end_index: count,
  title: z.string(),
  url: z.string(),
})
const annotations = z
  .array(z.strictObject({ type: z.literal('url_citation'), url_citation: urlCitation }))
  .optional()
const customCall = z.strictObject({
  id: z.string().min(1),
  type: z.literal('custom'),
  custom: z.strictObject({ name: z.string(), input: z.string() }),
})

const openAiTier = z.enum(['auto', 'default', 'flex', 'scale', 'priority']).nullable().optional()
const chatFinish = z.enum(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])
const fingerprint = z.string().optional()

/** Servers that show reasoning have it under these names; OpenAI has none. */
const reasoning = {
  reasoning_content: z.string().optional(),
  // Signed thinking.
  reasoning_details: z
    .array(z.looseObject({ type: z.string(), format: z.string() }))
    .min(1)
    .optional(),
}

export const chatCompletion = z.strictObject({
  id: z.string().min(1),
  object: z.literal('chat.completion'),
  created: z.int(),
  model: z.string(),
  choices: z.array(
    z.strictObject({
      index: count,
      message: z.strictObject({
        role: z.literal('assistant'),
        content: z.string().nullable(),
        refusal: z.string().nullable(),
        annotations,
        tool_calls: z
          .array(
            z.union([
              customCall,
              z.strictObject({
                id: z.string().min(1),
                type: z.literal('function'),
                function: z.strictObject({ name: z.string(), arguments: z.string() }),
              }),
            ]),
          )
          .min(1)
          .optional(),
        ...reasoning,
      }),
      logprobs: probabilities.nullable(),
      finish_reason: chatFinish,
    }),
  ),
  usage: chatUsage.optional(),
  service_tier: openAiTier,
  system_fingerprint: fingerprint,
})

export const chatChunk = z.strictObject({
  id: z.string().min(1),
  object: z.literal('chat.completion.chunk'),
  created: z.int(),
  model: z.string(),
  choices: z.array(
    z.strictObject({
      index: count,
      delta: z.strictObject({
        role: z.literal('assistant').optional(),
        content: z.string().nullable().optional(),
        refusal: z.string().nullable().optional(),
        annotations,
        tool_calls: z
          .array(
            z.strictObject({
              index: count,
              id: z.string().min(1).optional(),
              type: z.enum(['function', 'custom']).optional(),
              function: z
                .strictObject({ name: z.string().optional(), arguments: z.string().optional() })
                .optional(),
              custom: z.strictObject({ name: z.string().optional(), input: z.string() }).optional(),
            }),
          )
          .optional(),
        ...reasoning,
      }),
      logprobs: probabilities.nullable().optional(),
      finish_reason: chatFinish.nullable(),
    }),
  ),
  usage: chatUsage.nullable().optional(),
  service_tier: openAiTier,
  system_fingerprint: fingerprint,
})

const textChoice = { text: z.string(), index: count, logprobs: nothing }
const textCompletionOf = <T extends z.ZodType>(finish: T) =>
  z.strictObject({
    id: z.string(),
    object: z.literal('text_completion'),
    created: z.int(),
    model: z.string(),
    choices: z.array(z.strictObject({ ...textChoice, finish_reason: finish })),
    usage: chatUsage.optional(),
    system_fingerprint: fingerprint,
  })
const textFinish = z.enum(['stop', 'length', 'content_filter'])
export const textCompletion = textCompletionOf(textFinish)
export const textChunk = textCompletionOf(textFinish.nullable())

export const embeddings = z.strictObject({
  object: z.literal('list'),
  model: z.string(),
  data: z.array(
    z.strictObject({
      object: z.literal('embedding'),
      index: count,
      embedding: z.union([z.array(z.number()), z.string()]),
    }),
  ),
  usage: z.strictObject({ prompt_tokens: count, total_tokens: count }),
})

const outputText = z.strictObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(nothing).max(0),
  logprobs: z.array(nothing).max(0).optional(),
})
const outputRefusal = z.strictObject({ type: z.literal('refusal'), refusal: z.string() })
const reasoningText = z.strictObject({ type: z.literal('reasoning_text'), text: z.string() })
const outputPart = z.discriminatedUnion('type', [outputText, outputRefusal, reasoningText])
const itemStatus = z.enum(['in_progress', 'completed', 'incomplete'])
const outputItem = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('message'),
    id: z.string(),
    role: z.literal('assistant'),
    status: itemStatus,
    content: z.array(z.discriminatedUnion('type', [outputText, outputRefusal])),
  }),
  z.strictObject({
    type: z.literal('reasoning'),
    id: z.string(),
    status: itemStatus.optional(),
    summary: z.array(nothing).max(0),
    content: z.array(reasoningText).optional(),
    encrypted_content: z.string().optional(),
  }),
  z.strictObject({
    type: z.literal('function_call'),
    id: z.string().optional(),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
    status: itemStatus.optional(),
  }),
])

export const response = z.strictObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.int(),
  error: nothing,
  incomplete_details: z.strictObject({ reason: z.enum(['max_output_tokens', 'content_filter']) }).nullable(),
  instructions: z.string().nullable(),
  max_output_tokens: z.int().nullable().optional(),
  previous_response_id: nothing.optional(),
  reasoning: z
    .strictObject({ effort: z.string().nullable().optional(), summary: z.string().nullable().optional() })
    .nullable()
    .optional(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).optional() }).optional(),
  truncation: z.enum(['auto', 'disabled']).nullable().optional(),
  metadata: z.record(z.string(), z.string()).nullable(),
  model: z.string(),
  output: z.array(outputItem),
  parallel_tool_calls: z.boolean(),
  temperature: z.number().nullable(),
  top_p: z.number().nullable(),
  tool_choice: z.union([z.enum(['none', 'auto', 'required']), z.looseObject({ type: z.string() })]),
  tools: z.array(z.looseObject({ type: z.string() })),
  status: z.enum(['completed', 'failed', 'in_progress', 'cancelled', 'queued', 'incomplete']),
  service_tier: openAiTier,
  usage: z
    .strictObject({
      input_tokens: count,
      input_tokens_details: z.strictObject({ cached_tokens: count, cache_write_tokens: count }),
      output_tokens: count,
      output_tokens_details: z.strictObject({ reasoning_tokens: count }),
      total_tokens: count,
    })
    .optional(),
})

const inResponse = { sequence_number: count }
const ofItem = { ...inResponse, output_index: count }
const ofText = { ...ofItem, item_id: z.string(), content_index: count }
const noLogprobs = z.array(nothing).max(0)
const ofResponse = { ...inResponse, response }

export const responseEvent = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('response.created'), ...ofResponse }),
  z.strictObject({ type: z.literal('response.in_progress'), ...ofResponse }),
  z.strictObject({ type: z.literal('response.completed'), ...ofResponse }),
  z.strictObject({ type: z.literal('response.incomplete'), ...ofResponse }),
  z.strictObject({ type: z.literal('response.output_item.added'), ...ofItem, item: outputItem }),
  z.strictObject({ type: z.literal('response.output_item.done'), ...ofItem, item: outputItem }),
  z.strictObject({ type: z.literal('response.content_part.added'), ...ofText, part: outputPart }),
  z.strictObject({ type: z.literal('response.content_part.done'), ...ofText, part: outputPart }),
  z.strictObject({
    type: z.literal('response.output_text.delta'),
    ...ofText,
    delta: z.string(),
    logprobs: noLogprobs,
  }),
  z.strictObject({
    type: z.literal('response.output_text.done'),
    ...ofText,
    text: z.string(),
    logprobs: noLogprobs,
  }),
  z.strictObject({ type: z.literal('response.refusal.delta'), ...ofText, delta: z.string() }),
  z.strictObject({ type: z.literal('response.refusal.done'), ...ofText, refusal: z.string() }),
  z.strictObject({ type: z.literal('response.reasoning_text.delta'), ...ofText, delta: z.string() }),
  z.strictObject({ type: z.literal('response.reasoning_text.done'), ...ofText, text: z.string() }),
  z.strictObject({
    type: z.literal('error'),
    ...inResponse,
    code: z.string().nullable(),
    message: z.string(),
    param: z.string().nullable(),
  }),
  z.strictObject({
    type: z.literal('response.function_call_arguments.delta'),
    ...ofItem,
    item_id: z.string(),
    delta: z.string(),
  }),
  z.strictObject({
    type: z.literal('response.function_call_arguments.done'),
    ...ofItem,
    item_id: z.string(),
    arguments: z.string(),
    name: z.string().optional(),
  }),
])

/** `citations` is left out, not null, by the API itself; the SDK's types have it as null. */
const pageCitation = z.strictObject({
  type: z.literal('web_search_result_location'),
  url: z.string(),
  title: z.string().nullable(),
  encrypted_index: z.string(),
  cited_text: z.string(),
})
const textBlock = z.strictObject({
  type: z.literal('text'),
  text: z.string(),
  citations: z.array(pageCitation).optional(),
})
const toolUseBlock = z.strictObject({
  type: z.literal('tool_use'),
  id: z.string().min(1),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
  caller: z.strictObject({ type: z.literal('direct') }).optional(),
})
const thinkingBlock = z.strictObject({
  type: z.literal('thinking'),
  thinking: z.string(),
  signature: z.string(),
})
const block = z.discriminatedUnion('type', [textBlock, toolUseBlock, thinkingBlock])

const messageCounts = {
  cache_creation_input_tokens: count.nullable().optional(),
  cache_read_input_tokens: count.nullable().optional(),
  output_tokens: count,
  output_tokens_details: z.strictObject({ thinking_tokens: count }).nullable().optional(),
}
const messageUsage = z.strictObject({
  ...messageCounts,
  input_tokens: count,
  service_tier: z.enum(['standard', 'priority', 'batch']).nullable().optional(),
})
const stopReason = z.enum([
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'model_context_window_exceeded',
])
const stop = {
  stop_sequence: z.string().nullable(),
  stop_details: z
    .strictObject({
      type: z.literal('refusal'),
      category: z.string().nullable(),
      explanation: z.string().nullable(),
    })
    .nullable()
    .optional(),
}
const messageHead = {
  id: z.string().min(1),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: z.string(),
  usage: messageUsage,
  ...stop,
}

export const message = z.strictObject({ ...messageHead, content: z.array(block), stop_reason: stopReason })

export const messageEvent = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('message_start'),
    message: z.strictObject({ ...messageHead, content: z.array(block).max(0), stop_reason: nothing }),
  }),
  z.strictObject({ type: z.literal('content_block_start'), index: count, content_block: block }),
  z.strictObject({
    type: z.literal('content_block_delta'),
    index: count,
    delta: z.discriminatedUnion('type', [
      z.strictObject({ type: z.literal('text_delta'), text: z.string() }),
      z.strictObject({ type: z.literal('citations_delta'), citation: pageCitation }),
      z.strictObject({ type: z.literal('thinking_delta'), thinking: z.string() }),
      z.strictObject({ type: z.literal('signature_delta'), signature: z.string() }),
      z.strictObject({ type: z.literal('input_json_delta'), partial_json: z.string() }),
    ]),
  }),
  z.strictObject({ type: z.literal('content_block_stop'), index: count }),
  z.strictObject({
    type: z.literal('message_delta'),
    delta: z.strictObject({ stop_reason: stopReason, ...stop }),
    usage: z.strictObject({ ...messageCounts, input_tokens: count.nullable().optional() }),
  }),
  z.strictObject({ type: z.literal('message_stop') }),
  z.strictObject({
    type: z.literal('error'),
    error: z.strictObject({ type: z.string(), message: z.string() }),
    request_id: z.string().nullable().optional(),
  }),
])
