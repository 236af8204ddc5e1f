import { z } from 'zod'

/**
 * Requests as OpenAI publishes them, strict. Source: `ResponseCreateParams` of the package `openai`. The
 * service refuses other members.
 */
const cacheBreakpoint = z.strictObject({ mode: z.literal('explicit') }).optional()
const text = z.strictObject({
  type: z.literal('input_text'),
  text: z.string(),
  prompt_cache_breakpoint: cacheBreakpoint,
})
const image = z.strictObject({
  type: z.literal('input_image'),
  image_url: z.string(),
  detail: z.enum(['auto', 'low', 'high', 'original']),
})
const file = z.strictObject({
  type: z.literal('input_file'),
  file_data: z.string().optional(),
  file_id: z.string().optional(),
  file_url: z.string().optional(),
  filename: z.string().optional(),
})
const content = z.union([z.string(), z.array(z.discriminatedUnion('type', [text, image, file]))])
const role = z.enum(['user', 'system', 'developer', 'assistant'])

const item = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('message'), role, content }),
  z.strictObject({
    type: z.literal('reasoning'),
    id: z.string(),
    summary: z.array(z.null()).max(0),
    encrypted_content: z.string().min(1),
  }),
  z.strictObject({
    type: z.literal('function_call'),
    call_id: z.string().min(1),
    name: z.string(),
    arguments: z.string(),
  }),
  z.strictObject({ type: z.literal('function_call_output'), call_id: z.string().min(1), output: content }),
  z.strictObject({
    type: z.literal('custom_tool_call'),
    call_id: z.string().min(1),
    name: z.string(),
    input: z.string(),
  }),
  z.strictObject({ type: z.literal('custom_tool_call_output'), call_id: z.string().min(1), output: content }),
])

const grammar = z.strictObject({
  type: z.literal('grammar'),
  syntax: z.enum(['lark', 'regex']),
  definition: z.string(),
})
const location = z.strictObject({
  type: z.literal('approximate'),
  city: z.string().optional(),
  country: z.string().optional(),
  region: z.string().optional(),
  timezone: z.string().optional(),
})
const tool = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('function'),
    name: z.string(),
    description: z.string().optional(),
    parameters: z.looseObject({ type: z.string() }),
    strict: z.boolean(),
  }),
  z.strictObject({
    type: z.literal('custom'),
    name: z.string(),
    description: z.string().optional(),
    format: z.discriminatedUnion('type', [z.strictObject({ type: z.literal('text') }), grammar]).optional(),
  }),
  z.strictObject({
    type: z.literal('web_search'),
    search_context_size: z.enum(['low', 'medium', 'high']).optional(),
    user_location: location.optional(),
  }),
])
const namedTool = z.strictObject({ type: z.enum(['function', 'custom']), name: z.string() })

export const responsesRequest = z.strictObject({
  model: z.string(),
  input: z.array(item),
  store: z.literal(false),
  stream: z.boolean().optional(),
  stream_options: z.strictObject({ include_obfuscation: z.boolean() }).optional(),
  tools: z.array(tool).min(1).optional(),
  tool_choice: z
    .union([
      z.enum(['none', 'auto', 'required']),
      namedTool,
      z.strictObject({
        type: z.literal('allowed_tools'),
        mode: z.enum(['auto', 'required']),
        tools: z.array(namedTool),
      }),
    ])
    .optional(),
  parallel_tool_calls: z.boolean().optional(),
  max_output_tokens: z.int().optional(),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  top_logprobs: z.int().optional(),
  include: z.array(z.enum(['message.output_text.logprobs', 'reasoning.encrypted_content'])).optional(),
  reasoning: z
    .strictObject({
      effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).optional(),
      summary: z.enum(['auto', 'concise', 'detailed']).optional(),
    })
    .optional(),
  text: z
    .strictObject({
      verbosity: z.enum(['low', 'medium', 'high']).optional(),
      format: z
        .discriminatedUnion('type', [
          z.strictObject({ type: z.literal('json_object') }),
          z.strictObject({
            type: z.literal('json_schema'),
            name: z.string(),
            description: z.string().optional(),
            schema: z.looseObject({}),
            strict: z.boolean().optional(),
          }),
        ])
        .optional(),
    })
    .optional(),
  metadata: z.record(z.string(), z.string()).optional(),
  service_tier: z.string().optional(),
  user: z.string().optional(),
  safety_identifier: z.string().optional(),
  prompt_cache_key: z.string().optional(),
  prompt_cache_retention: z.enum(['in_memory', '24h']).optional(),
})
