import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Translates the `tools` of a responses request; undefined without tools. */
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
  ...['type', 'name', 'description', 'parameters', 'strict'],
  // A hint for loading.
  'defer_loading',
])

function toChatTool(tool: JsonValue, path: string, refusals: Refusals): JsonObject {
  if (!isJsonObject(tool)) {
    refusals.add(path, 'must be an object')
    return {}
  }
  if (tool.type !== 'function') {
    refusals.add(`${path}.type`, `tools of type "${tool.type}" exist at OpenAI only: use functions`)
    return {}
  }
  refusals.addUnknown(tool, toolFields, path)
  const { name, description, parameters, strict } = tool
  if (typeof name !== 'string') refusals.add(`${path}.name`, 'must be a string')
  return {
    type: 'function',
    function: {
      name: name ?? '',
      ...(isAbsent(description) ? undefined : { description }),
      ...(isAbsent(parameters) ? undefined : { parameters }),
      ...(typeof strict === 'boolean' ? { strict } : undefined),
    },
  }
}

const modes: ReadonlySet<JsonValue> = new Set(['none', 'auto', 'required'])

export function toToolChoice(choice: JsonValue | undefined, refusals: Refusals): JsonValue | undefined {
  if (isAbsent(choice)) return undefined
  if (modes.has(choice)) return choice
  if (isJsonObject(choice) && choice.type === 'function' && typeof choice.name === 'string')
    return { type: 'function', function: { name: choice.name } }
  refusals.add('tool_choice', 'must be none, auto, required or a named function')
  return undefined
}
