import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Translates the `tools` of a chat request; undefined without tools. */
export function toTools(tools: JsonValue | undefined, refusals: Refusals): JsonObject[] | undefined {
  if (isAbsent(tools)) return undefined
  if (!Array.isArray(tools)) {
    refusals.add('tools', 'must be a list')
    return undefined
  }
  const translated = tools.map((tool, index) => toTool(tool, `tools[${index}]`, refusals))
  return translated.length === 0 ? undefined : translated
}

const toolFields: ReadonlySet<string> = new Set(['type', 'function', 'cache_control'])
const functionFields: ReadonlySet<string> = new Set(['name', 'description', 'parameters', 'strict'])

function toTool(tool: JsonValue, path: string, refusals: Refusals): JsonObject {
  if (!isJsonObject(tool) || tool.type !== 'function' || !isJsonObject(tool.function)) {
    refusals.add(
      isJsonObject(tool) ? `${path}.type` : path,
      'only functions can be translated for the messages API',
    )
    return {}
  }
  refusals.addUnknown(tool, toolFields, path)
  refusals.addUnknown(tool.function, functionFields, `${path}.function`)
  const { name, description, parameters, strict } = tool.function
  if (typeof name !== 'string') refusals.add(`${path}.function.name`, 'must be a string')
  if (!isAbsent(parameters) && !isJsonObject(parameters))
    refusals.add(`${path}.function.parameters`, 'must be an object')
  return {
    name: name ?? '',
    ...(isAbsent(description) ? undefined : { description }),
    // The schema is optional in chat for functions without parameters; messages require an object schema.
    input_schema: { type: 'object', ...(isJsonObject(parameters) ? parameters : { properties: {} }) },
    ...(strict === true ? { strict } : undefined),
    ...(isJsonObject(tool.cache_control) ? { cache_control: tool.cache_control } : undefined),
  }
}

/** Translates `tool_choice` and `parallel_tool_calls` together, because messages have one field for both. */
export function toToolChoice(
  body: JsonObject,
  hasTools: boolean,
  refusals: Refusals,
): JsonObject | undefined {
  const choice = namedChoice(body.tool_choice, refusals)
  // Without tools, `auto` and `none` are the default, and the messages API rejects them.
  if (!hasTools) return choice?.type === 'any' || choice?.type === 'tool' ? choice : undefined
  if (body.parallel_tool_calls !== false || choice?.type === 'none') return choice
  return { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true }
}

function namedChoice(choice: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(choice)) return undefined
  if (choice === 'auto' || choice === 'none') return { type: choice }
  if (choice === 'required') return { type: 'any' }
  if (isJsonObject(choice) && choice.type === 'function' && isJsonObject(choice.function)) {
    const { name } = choice.function
    if (typeof name === 'string') return { type: 'tool', name }
  }
  refusals.add('tool_choice', 'must be auto, none, required or a named function')
  return undefined
}
