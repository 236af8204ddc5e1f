import { boolean, type Infer, integer, list, name, object, optional, string } from '../../../schema/dsl.ts'

const prompt = object(
  {
    role: name({
      doc: 'Role of the message.',
      example: 'system',
      suggestions: ['system', 'user', 'assistant'],
    }),
    content: string({ doc: 'Text of the message.', example: 'Answer in one sentence.' }),
  },
  { doc: 'A message.' },
)

/** `prompts` of a model, and of `policies.ai`. */
export const promptsSchema = object(
  {
    prepend: optional(list(prompt, { doc: 'Messages before those of the client.' }, { max: 100 })),
    append: optional(list(prompt, { doc: 'Messages behind those of the client.' }, { max: 100 })),
  },
  {
    doc: 'Messages added to chat completions, messages, token counts and responses. In the messages API, those of the role `system` become parts of `system`.',
    example: { prepend: [{ role: 'system', content: 'Answer in one sentence.' }] },
  },
)

export type PromptsConfig = Infer<typeof promptsSchema>

/** `promptCaching` of a model, and of `policies.ai`. */
export const promptCachingSchema = object(
  {
    cacheSystem: optional(boolean({ doc: 'Marks the end of the system prompt.', default: true })),
    cacheMessages: optional(
      boolean({ doc: 'Marks the end of the conversation before its last message.', default: true }),
    ),
    cacheTools: optional(boolean({ doc: 'Marks the end of the tool definitions.', default: false })),
    minTokens: optional(
      integer(
        { doc: 'Estimated tokens of the system prompt from which it is marked.', default: 1024 },
        { min: 0, max: 10_000_000 },
      ),
    ),
    cacheMessageOffset: optional(
      integer(
        { doc: 'Messages by which the mark of the conversation is placed earlier.', default: 0 },
        { min: 0, max: 1_000_000 },
      ),
    ),
  },
  {
    doc: 'Adds cache markers (`cache_control`) to requests in the messages API, next to those of the client and up to four in total. Providers without cache markers cache prompts by themselves or not at all: no effect there.',
    example: { cacheSystem: true, cacheTools: true },
  },
)

export type PromptCachingConfig = Infer<typeof promptCachingSchema>
