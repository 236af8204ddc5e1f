import type { ChatMessage, ChatRequest, FunctionTool } from './chat-request.ts'

export type Image = { readonly name: string; readonly bytes: number; readonly dataUrl: string }

export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: string }

export type Usage = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens?: number
  readonly reasoningTokens?: number
}

/** State of one request to a model. Times in milliseconds from its start. */
export type Run = {
  readonly state: 'waiting' | 'streaming' | 'done' | 'stopped' | 'failed'
  readonly request: ChatRequest
  /** RFC 3339. */
  readonly startedAt: string
  readonly status?: number
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly firstTokenMs?: number
  readonly totalMs?: number
  readonly usage?: Usage
  readonly finishReason?: string
  readonly error?: { readonly message: string; readonly code?: string }
}

export type Turn =
  | { readonly kind: 'user'; readonly id: string; readonly text: string; readonly images: readonly Image[] }
  | {
      readonly kind: 'answer'
      readonly id: string
      readonly model: string
      readonly text: string
      readonly reasoning: string
      readonly toolCalls: readonly ToolCall[]
      readonly run: Run
    }
  | { readonly kind: 'result'; readonly id: string; readonly callId: string; readonly text: string }

export type Answer = Extract<Turn, { kind: 'answer' }>

/** Function that the model may call, as entered: `parameters` is JSON text. */
export type ToolDraft = {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly parameters: string
}

/** Parameters of requests; empty texts are omitted. */
export type Settings = {
  readonly system: string
  readonly stream: boolean
  readonly temperature: string
  readonly topP: string
  readonly maxTokens: string
  readonly seed: string
  readonly stop: string
  readonly effort: string
  readonly format: 'text' | 'json_object'
  readonly tools: readonly ToolDraft[]
}

export const initialSettings: Settings = {
  system: '',
  stream: true,
  temperature: '',
  topP: '',
  maxTokens: '',
  seed: '',
  stop: '',
  effort: '',
  format: 'text',
  tools: [],
}

/** Builds the chat completion for a conversation. Incomplete answers and tools are left out. */
export function requestOf(model: string, turns: readonly Turn[], settings: Settings): ChatRequest {
  const tools = settings.tools.flatMap((tool) => functionOf(tool) ?? [])
  const stop = settings.stop.split('\n').filter((line) => line !== '')
  return {
    model,
    messages: [
      ...(settings.system.trim() === '' ? [] : [{ role: 'system' as const, content: settings.system }]),
      ...turns.flatMap((turn) => messageOf(turn) ?? []),
    ],
    ...(settings.stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...numberField('temperature', settings.temperature),
    ...numberField('top_p', settings.topP),
    ...numberField('max_tokens', settings.maxTokens),
    ...numberField('seed', settings.seed),
    ...(stop.length > 0 ? { stop } : {}),
    ...(settings.effort === '' ? {} : { reasoning_effort: settings.effort }),
    ...(settings.format === 'text' ? {} : { response_format: { type: settings.format } }),
    ...(tools.length > 0 ? { tools } : {}),
  }
}

/** Problem of an entered tool, or undefined. */
export function problemOfTool({ name, parameters }: ToolDraft): string | undefined {
  if (!/^[\w-]{1,64}$/.test(name)) return 'Name must have 1 to 64 letters, digits, "_" or "-".'
  return parsedObject(parameters) ? undefined : 'Parameters must be a JSON object: a JSON Schema.'
}

/** Tool calls of the last answer without a result. */
export function openCalls(turns: readonly Turn[]): readonly ToolCall[] {
  const at = turns.findLastIndex((turn) => turn.kind === 'answer')
  const last = turns[at]
  if (last?.kind !== 'answer' || last.run.state !== 'done') return []
  const answered = new Set(turns.slice(at + 1).map((turn) => (turn.kind === 'result' ? turn.callId : '')))
  return last.toolCalls.filter(({ id }) => !answered.has(id))
}

function messageOf(turn: Turn): ChatMessage | undefined {
  switch (turn.kind) {
    case 'user':
      return {
        role: 'user',
        content:
          turn.images.length === 0
            ? turn.text
            : [
                ...(turn.text === '' ? [] : [{ type: 'text' as const, text: turn.text }]),
                ...turn.images.map(({ dataUrl }) => ({
                  type: 'image_url' as const,
                  image_url: { url: dataUrl },
                })),
              ],
      }
    case 'result':
      return { role: 'tool', tool_call_id: turn.callId, content: turn.text }
    case 'answer':
      if (turn.run.state === 'failed' || (turn.text === '' && turn.toolCalls.length === 0)) return undefined
      return {
        role: 'assistant',
        content: turn.text === '' ? null : turn.text,
        ...(turn.toolCalls.length === 0
          ? {}
          : {
              tool_calls: turn.toolCalls.map(({ id, name, arguments: text }) => ({
                id,
                type: 'function' as const,
                function: { name, arguments: text },
              })),
            }),
      }
  }
}

function functionOf(tool: ToolDraft): FunctionTool | undefined {
  if (problemOfTool(tool)) return undefined
  const description = tool.description.trim()
  return {
    type: 'function',
    function: {
      name: tool.name,
      ...(description === '' ? {} : { description }),
      parameters: parsedObject(tool.parameters) ?? {},
    },
  }
}

function numberField(name: string, text: string): Record<string, number> {
  const value = Number(text)
  return text.trim() === '' || !Number.isFinite(value) ? {} : { [name]: value }
}

function parsedObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
