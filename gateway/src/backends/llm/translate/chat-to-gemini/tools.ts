import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Translates the `tools` of a chat request; undefined without tools. */
export function toTools(tools: JsonValue | undefined, refusals: Refusals): JsonObject[] | undefined {
  if (isAbsent(tools)) return undefined
  if (!Array.isArray(tools)) {
    refusals.add('tools', 'must be a list')
    return undefined
  }
  const functionDeclarations = tools.map((tool, index) => toDeclaration(tool, `tools[${index}]`, refusals))
  return functionDeclarations.length === 0 ? undefined : [{ functionDeclarations }]
}

const toolFields: ReadonlySet<string> = new Set(['type', 'function', 'cache_control'])
/** `strict` has no counterpart in a declaration; calls are validated by the model in any case. */
const functionFields: ReadonlySet<string> = new Set(['name', 'description', 'parameters', 'strict'])

function toDeclaration(tool: JsonValue, path: string, refusals: Refusals): JsonObject {
  if (!isJsonObject(tool) || tool.type !== 'function' || !isJsonObject(tool.function)) {
    refusals.add(isJsonObject(tool) ? `${path}.type` : path, 'only functions can be translated for Gemini')
    return {}
  }
  refusals.addUnknown(tool, toolFields, path)
  refusals.addUnknown(tool.function, functionFields, `${path}.function`)
  const { name, description, parameters } = tool.function
  if (typeof name !== 'string') refusals.add(`${path}.function.name`, 'must be a string')
  if (!isAbsent(parameters) && !isJsonObject(parameters))
    refusals.add(`${path}.function.parameters`, 'must be an object')
  return {
    name: name ?? '',
    ...(isAbsent(description) ? undefined : { description }),
    ...(isJsonObject(parameters) && hasProperties(parameters)
      ? { parametersJsonSchema: parameters }
      : undefined),
  }
}

/** The schema of a function without parameters is omitted: an object without properties is refused. */
function hasProperties({ type, properties }: JsonObject): boolean {
  return type !== 'object' || (isJsonObject(properties) && Object.keys(properties).length > 0)
}

/** Translates `tool_choice`; undefined for the default. */
export function toToolConfig(choice: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(choice)) return undefined
  if (typeof choice === 'string') {
    const mode = modes.get(choice)
    if (mode !== undefined) return { functionCallingConfig: { mode } }
  }
  if (isJsonObject(choice) && choice.type === 'function' && isJsonObject(choice.function)) {
    const { name } = choice.function
    if (typeof name === 'string')
      return { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [name] } }
  }
  refusals.add('tool_choice', 'must be auto, none, required or a named function')
  return undefined
}

const modes: ReadonlyMap<string, string> = new Map([
  ['auto', 'AUTO'],
  ['none', 'NONE'],
  ['required', 'ANY'],
])
