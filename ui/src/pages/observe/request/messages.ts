/** A part of a message of a stored prompt or response. */
export type MessagePart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tool call'; readonly name: string; readonly text: string }
  | { readonly kind: 'other'; readonly type: string; readonly text: string }

export type ChatMessage = { readonly role: string; readonly parts: readonly MessagePart[] }

const maxMessages = 500

/** Reads a stored text as messages; undefined if it is not a list of messages, for example if it was cut off. */
export function readMessages(text: string): readonly ChatMessage[] | undefined {
  const value = parse(text)
  if (!Array.isArray(value) || value.length === 0) return undefined
  const messages = value.slice(0, maxMessages).map(readMessage)
  return messages.every((message) => message !== undefined) ? messages : undefined
}

/** A stored text with indents, if it is JSON. */
export function formatJson(text: string): string {
  const value = parse(text)
  return value === undefined ? text : JSON.stringify(value, null, 2)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function readMessage(value: unknown): ChatMessage | undefined {
  if (!isObject(value)) return undefined
  const { role, content, tool_calls: calls } = value
  if (typeof role !== 'string') return undefined
  return { role, parts: [...readContent(content), ...(Array.isArray(calls) ? calls.map(readCall) : [])] }
}

function readContent(content: unknown): MessagePart[] {
  if (content === null || content === undefined) return []
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
  if (Array.isArray(content)) return content.map(readPart)
  return [{ kind: 'other', type: 'content', text: JSON.stringify(content) }]
}

function readPart(part: unknown): MessagePart {
  if (typeof part === 'string') return { kind: 'text', text: part }
  if (!isObject(part)) return { kind: 'other', type: typeof part, text: JSON.stringify(part) }
  const { type, text, name, input } = part
  if (typeof text === 'string') return { kind: 'text', text }
  if (type === 'tool_use' && typeof name === 'string')
    return { kind: 'tool call', name, text: JSON.stringify(input, null, 2) ?? '' }
  return {
    kind: 'other',
    type: typeof type === 'string' ? type : 'part',
    text: JSON.stringify(part, null, 2),
  }
}

function readCall(call: unknown): MessagePart {
  const called = isObject(call) && isObject(call['function']) ? call['function'] : undefined
  if (called === undefined || typeof called['name'] !== 'string')
    return { kind: 'other', type: 'tool call', text: JSON.stringify(call, null, 2) }
  const { name, arguments: sent } = called
  return { kind: 'tool call', name, text: typeof sent === 'string' ? formatJson(sent) : JSON.stringify(sent) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
