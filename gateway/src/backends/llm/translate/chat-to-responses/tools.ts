import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Translates `tools` and `web_search_options` of a chat request; undefined without tools. */
export function toResponseTools(
  { tools, web_search_options: search }: JsonObject,
  refusals: Refusals,
): JsonObject[] | undefined {
  const translated: JsonObject[] = []
  if (Array.isArray(tools))
    for (const [index, tool] of tools.entries()) translated.push(toTool(tool, `tools[${index}]`, refusals))
  else if (!isAbsent(tools)) refusals.add('tools', 'must be a list')
  if (!isAbsent(search)) translated.push(toWebSearch(search, refusals))
  return translated.length === 0 ? undefined : translated
}

/** `cache_control` is a field for the messages API that chat clients may add. */
const toolFields: ReadonlySet<string> = new Set(['type', 'function', 'custom', 'cache_control'])
const functionFields: ReadonlySet<string> = new Set(['name', 'description', 'parameters', 'strict'])
const customFields: ReadonlySet<string> = new Set(['name', 'description', 'format'])

function toTool(tool: JsonValue, path: string, refusals: Refusals): JsonObject {
  if (!isJsonObject(tool)) {
    refusals.add(path, 'must be an object')
    return {}
  }
  refusals.addUnknown(tool, toolFields, path)
  if (tool.type === 'function' && isJsonObject(tool.function))
    return toFunction(tool.function, `${path}.function`, refusals)
  if (tool.type === 'custom' && isJsonObject(tool.custom))
    return toCustom(tool.custom, `${path}.custom`, refusals)
  refusals.add(`${path}.type`, 'must be function or custom, with a member of that name')
  return {}
}

/** In the Responses API functions are strict by default, and their schema is required. */
function toFunction(given: JsonObject, path: string, refusals: Refusals): JsonObject {
  refusals.addUnknown(given, functionFields, path)
  const { name, description, parameters, strict } = given
  if (typeof name !== 'string') refusals.add(`${path}.name`, 'must be a string')
  return {
    type: 'function',
    name: name ?? '',
    ...(isAbsent(description) ? undefined : { description }),
    parameters: parameters ?? { type: 'object', properties: {} },
    strict: strict === true,
  }
}

/** A grammar is a member of the format in chat only. */
function toCustom(given: JsonObject, path: string, refusals: Refusals): JsonObject {
  refusals.addUnknown(given, customFields, path)
  const { name, description, format } = given
  if (typeof name !== 'string') refusals.add(`${path}.name`, 'must be a string')
  const { grammar, ...others } = isJsonObject(format) ? format : {}
  return {
    type: 'custom',
    name: name ?? '',
    ...(isAbsent(description) ? undefined : { description }),
    ...(isAbsent(format) ? undefined : { format: { ...others, ...(isJsonObject(grammar) ? grammar : {}) } }),
  }
}

const searchFields: ReadonlySet<string> = new Set(['search_context_size', 'user_location'])

/** Models of chat that search always do; in the Responses API search is a tool of the provider. */
function toWebSearch(options: JsonValue, refusals: Refusals): JsonObject {
  if (!isJsonObject(options)) {
    refusals.add('web_search_options', 'must be an object')
    return {}
  }
  refusals.addUnknown(options, searchFields, 'web_search_options')
  const { search_context_size: size, user_location: location } = options
  const { approximate } = isJsonObject(location) ? location : {}
  return {
    type: 'web_search',
    ...(isAbsent(size) ? undefined : { search_context_size: size }),
    ...(isJsonObject(approximate) ? { user_location: { type: 'approximate', ...approximate } } : undefined),
  }
}

const modes: ReadonlySet<JsonValue> = new Set(['none', 'auto', 'required'])

export function toToolChoice(choice: JsonValue | undefined, refusals: Refusals): JsonValue | undefined {
  if (isAbsent(choice)) return undefined
  if (modes.has(choice)) return choice
  const translated = isJsonObject(choice) ? (namedTool(choice) ?? allowedTools(choice)) : undefined
  if (translated === undefined)
    refusals.add('tool_choice', 'must be none, auto, required, a named tool or allowed_tools')
  return translated
}

/** Names are members of an object of the type in chat only. */
function namedTool(choice: JsonObject): JsonObject | undefined {
  const { type } = choice
  const named = type === 'function' || type === 'custom' ? choice[type] : undefined
  return isJsonObject(named) && typeof named.name === 'string'
    ? { type: type ?? '', name: named.name }
    : undefined
}

function allowedTools({ type, allowed_tools: allowed }: JsonObject): JsonObject | undefined {
  if (type !== 'allowed_tools' || !isJsonObject(allowed) || !Array.isArray(allowed.tools)) return undefined
  const tools = allowed.tools.map((tool) => (isJsonObject(tool) ? namedTool(tool) : undefined))
  if (!tools.every((tool) => tool !== undefined)) return undefined
  return { type, mode: allowed.mode ?? 'auto', tools }
}
