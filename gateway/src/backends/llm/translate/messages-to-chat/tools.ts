import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Translates the `tools` of a messages request; undefined without tools. */
export function toChatTools(tools: JsonValue | undefined, refusals: Refusals): JsonObject[] | undefined {
  if (isAbsent(tools)) return undefined
  if (!Array.isArray(tools)) {
    refusals.add('tools', 'must be a list')
    return undefined
  }
  const translated = tools.map((tool, index) => toChatTool(tool, `tools[${index}]`, refusals))
  return translated.length === 0 ? undefined : translated
}

const toolFields: ReadonlySet<string> = new Set([
  ...['type', 'name', 'description', 'input_schema', 'strict'],
  // Hints for caching, loading, streaming and examples, which are optional.
  ...['cache_control', 'defer_loading', 'eager_input_streaming', 'input_examples', 'allowed_callers'],
])

function toChatTool(tool: JsonValue, path: string, refusals: Refusals): JsonObject {
  if (!isJsonObject(tool)) {
    refusals.add(path, 'must be an object')
    return {}
  }
  if (!isAbsent(tool.type) && tool.type !== 'custom') {
    refusals.add(`${path}.type`, `tools of type "${tool.type}" exist in the messages API only`)
    return {}
  }
  refusals.addUnknown(tool, toolFields, path)
  const { name, description, input_schema: schema, strict, allowed_callers: callers } = tool
  if (typeof name !== 'string') refusals.add(`${path}.name`, 'must be a string')
  if (!isJsonObject(schema)) refusals.add(`${path}.input_schema`, 'must be an object')
  if (Array.isArray(callers) && !callers.includes('direct')) {
    refusals.add(`${path}.allowed_callers`, 'chat completions call every tool directly')
  }
  return {
    type: 'function',
    function: {
      name: name ?? '',
      ...(isAbsent(description) ? undefined : { description }),
      parameters: schema ?? {},
      ...(strict === true ? { strict } : undefined),
    },
  }
}

/** `tool_choice` in the two fields of chat; `parallelToolCalls` is false or undefined. */
export type ChatToolChoice = { toolChoice: JsonValue | undefined; parallelToolCalls: false | undefined }

export function toChatToolChoice(choice: JsonValue | undefined, refusals: Refusals): ChatToolChoice {
  if (isAbsent(choice)) return { toolChoice: undefined, parallelToolCalls: undefined }
  const translated = isJsonObject(choice) ? namedChoice(choice) : undefined
  if (translated === undefined)
    refusals.add('tool_choice', 'must be of type auto, any, none or tool with a name')
  const single = isJsonObject(choice) && choice.disable_parallel_tool_use === true
  return { toolChoice: translated, parallelToolCalls: single ? false : undefined }
}

function namedChoice({ type, name }: JsonObject): JsonValue | undefined {
  if (type === 'auto' || type === 'none') return type
  if (type === 'any') return 'required'
  return type === 'tool' && typeof name === 'string' ? { type: 'function', function: { name } } : undefined
}
