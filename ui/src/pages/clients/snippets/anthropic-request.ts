import type { ChatMessage, ChatRequest, ContentPart } from '../../chat/model/chat-request.ts'

const defaultMaxTokens = 1_024

/** The Anthropic messages request with the meaning of a chat completion, for SDK code. */
export function anthropicRequest(request: ChatRequest): Record<string, unknown> {
  const system = request.messages.flatMap((message) => (message.role === 'system' ? message.content : []))
  const { temperature, top_p, stop, max_tokens = defaultMaxTokens } = request
  return {
    model: request.model,
    max_tokens,
    ...(system.length > 0 ? { system: system.join('\n\n') } : {}),
    messages: joined(request.messages.flatMap((message) => messageOf(message) ?? [])),
    ...(temperature === undefined ? {} : { temperature }),
    ...(top_p === undefined ? {} : { top_p }),
    ...(stop === undefined ? {} : { stop_sequences: stop }),
    ...(request.tools === undefined
      ? {}
      : {
          tools: request.tools.map(({ function: { name, description, parameters } }) => ({
            name,
            ...(description === undefined ? {} : { description }),
            input_schema: { type: 'object', ...parameters },
          })),
        }),
  }
}

type Message = { readonly role: 'user' | 'assistant'; readonly content: string | readonly unknown[] }

function messageOf(message: ChatMessage): Message | undefined {
  switch (message.role) {
    case 'system':
      return undefined
    case 'user':
      return {
        role: 'user',
        content: typeof message.content === 'string' ? message.content : message.content.map(partOf),
      }
    case 'tool':
      return {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: message.tool_call_id, content: message.content }],
      }
    case 'assistant':
      if (message.tool_calls === undefined) return { role: 'assistant', content: message.content ?? '' }
      return {
        role: 'assistant',
        content: [
          ...(message.content ? [{ type: 'text', text: message.content }] : []),
          ...message.tool_calls.map((call) => ({
            type: 'tool_use',
            id: call.id,
            name: call.function.name,
            input: parsedArguments(call.function.arguments),
          })),
        ],
      }
  }
}

/** Results of several tools belong to one message. */
function joined(messages: readonly Message[]): readonly Message[] {
  const result: Message[] = []
  for (const message of messages) {
    const last = result.at(-1)
    if (last?.role === message.role && Array.isArray(last.content) && Array.isArray(message.content))
      result[result.length - 1] = { role: last.role, content: [...last.content, ...message.content] }
    else result.push(message)
  }
  return result
}

function partOf(part: ContentPart): unknown {
  if (part.type === 'text') return part
  const [, type, data] = /^data:([^;,]+);base64,(.*)$/s.exec(part.image_url.url) ?? []
  return type === undefined
    ? { type: 'image', source: { type: 'url', url: part.image_url.url } }
    : { type: 'image', source: { type: 'base64', media_type: type, data } }
}

function parsedArguments(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
