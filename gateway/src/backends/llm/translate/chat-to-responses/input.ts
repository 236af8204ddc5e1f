import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import { joinedText, toContent } from './content.ts'
import { reasoningItems } from './encrypted-reasoning.ts'

/** Items in construction, and ids of calls of custom tools, whose results have a type of their own. */
type Input = { readonly items: JsonObject[]; readonly customCalls: Set<JsonValue> }

/** Translates the `messages` of a chat request to the items of a responses request, in order. */
export function toInput(messages: JsonValue | undefined, refusals: Refusals): JsonObject[] {
  const input: Input = { items: [], customCalls: new Set() }
  if (!Array.isArray(messages)) {
    refusals.add('messages', 'must be a list')
    return input.items
  }
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`
    if (isJsonObject(message)) addMessage(input, message, path, refusals)
    else refusals.add(path, 'must be an object')
  }
  return input.items
}

/** `name` has no counterpart and is removed. */
const plainFields: ReadonlySet<string> = new Set(['role', 'content', 'name'])
const toolFields: ReadonlySet<string> = new Set(['role', 'content', 'tool_call_id', 'name'])

function addMessage(input: Input, message: JsonObject, path: string, refusals: Refusals): void {
  const { role, content, tool_call_id: id } = message
  switch (role) {
    case 'system':
    case 'developer':
    case 'user':
      refusals.addUnknown(message, plainFields, path)
      input.items.push({ type: 'message', role, content: toContent(content, `${path}.content`, refusals) })
      return
    case 'assistant':
      addTurn(input, message, path, refusals)
      return
    case 'tool':
      refusals.addUnknown(message, toolFields, path)
      if (typeof id !== 'string') refusals.add(`${path}.tool_call_id`, 'must be a string')
      input.items.push({
        type: input.customCalls.has(id ?? '') ? 'custom_tool_call_output' : 'function_call_output',
        call_id: id ?? '',
        output: toContent(content, `${path}.content`, refusals),
      })
      return
    default:
      refusals.add(`${path}.role`, 'must be system, developer, user, assistant or tool')
  }
}

const assistantFields: ReadonlySet<string> = new Set([
  ...['role', 'content', 'name', 'refusal', 'tool_calls', 'reasoning_details'],
  // Response fields that clients send back: contained in the text, or unusable without encryption.
  ...['annotations', 'reasoning_content', 'reasoning'],
])

/** Reasoning comes before the text and the calls that follow from it. */
function addTurn({ items, customCalls }: Input, message: JsonObject, path: string, refusals: Refusals): void {
  refusals.addUnknown(message, assistantFields, path)
  const { content, refusal, tool_calls: calls } = message
  const text = joinedText(content, `${path}.content`, refusals)
  const whole = typeof refusal === 'string' ? text + refusal : text
  if (!isAbsent(calls) && !Array.isArray(calls)) {
    refusals.add(`${path}.tool_calls`, 'must be a list')
    return
  }
  const toolCalls = isAbsent(calls) ? [] : calls
  // The Responses API refuses reasoning without an item after it.
  if (whole !== '' || toolCalls.length > 0)
    for (const item of reasoningItems(message.reasoning_details)) items.push(item)
  if (whole !== '') items.push({ type: 'message', role: 'assistant', content: whole })
  for (const [index, call] of toolCalls.entries()) {
    const item = toCall(call, `${path}.tool_calls[${index}]`, refusals)
    if (item === undefined) continue
    items.push(item)
    if (item.type === 'custom_tool_call') customCalls.add(item.call_id ?? '')
  }
}

function toCall(call: JsonValue, path: string, refusals: Refusals): JsonObject | undefined {
  if (!isJsonObject(call)) {
    refusals.add(path, 'must be an object')
    return undefined
  }
  const { id, function: made, custom } = call
  if (typeof id !== 'string') refusals.add(`${path}.id`, 'must be a string')
  if (isJsonObject(custom) && call.type === 'custom')
    return {
      type: 'custom_tool_call',
      call_id: id ?? '',
      name: custom.name ?? '',
      input: custom.input ?? '',
    }
  if (!isJsonObject(made) || typeof made.name !== 'string') {
    refusals.add(`${path}.function`, 'must be an object with a name')
    return undefined
  }
  const { name, arguments: args } = made
  if (!isAbsent(args) && typeof args !== 'string')
    refusals.add(`${path}.function.arguments`, 'must be a string')
  // Models often omit the arguments of functions without parameters.
  return { type: 'function_call', call_id: id ?? '', name, arguments: args || '{}' }
}
