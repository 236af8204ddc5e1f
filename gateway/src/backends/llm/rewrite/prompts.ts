import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { PromptsConfig } from './config.ts'
import type { RewriteObject } from './rewrite-object.ts'

/** Compiles `prompts`; undefined without messages. */
export function compilePrompts(config: PromptsConfig | undefined): RewriteObject | undefined {
  const { prepend = [], append = [] } = config ?? {}
  if (prepend.length + append.length === 0) return undefined
  const all = { before: prepend, after: append }
  const system = { before: prepend.filter(isSystem), after: append.filter(isSystem) }
  const chat = { before: prepend.filter(isChat), after: append.filter(isChat) }
  return (object, endpoint) => {
    switch (endpoint) {
      case 'chat':
      case 'cohere_chat':
        return withMessages(object, all)
      case 'messages':
      case 'count_tokens':
        return withMessages(withSystem(object, system), chat)
      case 'responses':
        return withInput(object, all)
      case 'generate_content':
      case 'gemini_count_tokens':
        return withContents(withInstruction(object, system), chat)
      case 'converse':
        return withTurns(withConverseSystem(object, system), chat)
      default:
        return object
    }
  }
}

type Prompt = NonNullable<PromptsConfig['prepend']>[number]
type Prompts = { readonly before: readonly Prompt[]; readonly after: readonly Prompt[] }

function isSystem({ role }: Prompt): boolean {
  return role === 'system'
}

function isChat(prompt: Prompt): boolean {
  return !isSystem(prompt)
}

/** A body without messages is refused by the provider. */
function withMessages(object: JsonObject, { before, after }: Prompts): JsonObject {
  const { messages } = object
  if (!Array.isArray(messages) || before.length + after.length === 0) return object
  return { ...object, messages: [...before.map(messageOf), ...messages, ...after.map(messageOf)] }
}

function withSystem(object: JsonObject, { before, after }: Prompts): JsonObject {
  if (before.length + after.length === 0) return object
  return {
    ...object,
    system: [...before.map(textOf), ...textParts(object['system']), ...after.map(textOf)],
  }
}

function withInput(object: JsonObject, { before, after }: Prompts): JsonObject {
  const { input } = object
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  if (items !== undefined && !Array.isArray(items)) return object
  return { ...object, input: [...before.map(messageOf), ...(items ?? []), ...after.map(messageOf)] }
}

/** Google accepts both names, and a single part or content in place of a list. */
function withInstruction(object: JsonObject, { before, after }: Prompts): JsonObject {
  if (before.length + after.length === 0) return object
  const name = Object.hasOwn(object, 'system_instruction') ? 'system_instruction' : 'systemInstruction'
  const instruction = object[name]
  const own = isJsonObject(instruction) ? instruction : {}
  const parts = [...before.map(partOf), ...listOf(own['parts']), ...after.map(partOf)]
  return { ...object, [name]: { ...own, parts } }
}

function withContents(object: JsonObject, { before, after }: Prompts): JsonObject {
  const { contents } = object
  if (contents === undefined || before.length + after.length === 0) return object
  return {
    ...object,
    contents: [...before.map(contentOf), ...listOf(contents), ...after.map(contentOf)],
  }
}

function withConverseSystem(object: JsonObject, { before, after }: Prompts): JsonObject {
  if (before.length + after.length === 0) return object
  return {
    ...object,
    system: [...before.map(partOf), ...listOf(object['system']), ...after.map(partOf)],
  }
}

function withTurns(object: JsonObject, { before, after }: Prompts): JsonObject {
  const { messages } = object
  if (!Array.isArray(messages) || before.length + after.length === 0) return object
  return { ...object, messages: [...before.map(turnOf), ...messages, ...after.map(turnOf)] }
}

function turnOf({ role, content }: Prompt): JsonObject {
  return { role, content: [{ text: content }] }
}

function contentOf({ role, content }: Prompt): JsonObject {
  return { role: role === 'assistant' ? 'model' : 'user', parts: [{ text: content }] }
}

function partOf({ content }: Prompt): JsonObject {
  return { text: content }
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value]
}

/** Parts of a text in one of its two forms. */
export function textParts(text: JsonValue | undefined): readonly JsonValue[] {
  if (typeof text === 'string') return text === '' ? [] : [{ type: 'text', text }]
  return Array.isArray(text) ? text : []
}

function messageOf({ role, content }: Prompt): JsonObject {
  return { role, content }
}

function textOf({ content }: Prompt): JsonObject {
  return { type: 'text', text: content }
}

/** Whether a value is a part with a text. */
export function isTextPart(part: JsonValue | undefined): part is JsonObject & { text: string } {
  return isJsonObject(part) && typeof part['text'] === 'string'
}
