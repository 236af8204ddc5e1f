import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { closeSchema } from '../gemini-to-chat/schema.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Functions and the choice among them, in the fields of chat completions. */
export type ChatTools = { readonly tools: JsonObject[] | undefined; readonly choice: JsonValue | undefined }

const choices: ReadonlyMap<JsonValue, string> = new Map([
  ['REQUIRED', 'required'],
  ['NONE', 'none'],
])

/** Translates `tools`, `tool_choice` and `strict_tools`. */
export function toChatTools(body: JsonObject, refusals: Refusals): ChatTools {
  const { tools = null, tool_choice: given, strict_tools: strict } = body
  const choice = isAbsent(given) ? undefined : choices.get(given)
  if (!isAbsent(given) && choice === undefined) refusals.add('tool_choice', 'must be REQUIRED or NONE')
  if (tools === null) return { tools: undefined, choice: undefined }
  if (!Array.isArray(tools)) {
    refusals.add('tools', 'must be a list')
    return { tools: undefined, choice: undefined }
  }
  if (tools.length === 0) return { tools: undefined, choice: undefined }
  return {
    tools: tools.map((tool, index) => toChatTool(tool, `tools[${index}]`, { refusals, strict })),
    choice,
  }
}

const toolFields: ReadonlySet<string> = new Set(['type', 'function'])
const functionFields: ReadonlySet<string> = new Set(['name', 'description', 'parameters'])

function toChatTool(
  tool: JsonValue,
  path: string,
  { refusals, strict }: { refusals: Refusals; strict: JsonValue | undefined },
): JsonObject {
  const made = isJsonObject(tool) ? tool.function : undefined
  if (!isJsonObject(tool) || tool.type !== 'function' || !isJsonObject(made)) {
    refusals.add(path, 'must be an object with type "function" and a function')
    return {}
  }
  refusals.addUnknown(tool, toolFields, path)
  refusals.addUnknown(made, functionFields, `${path}.function`)
  const { name, description, parameters } = made
  if (typeof name !== 'string') refusals.add(`${path}.function.name`, 'must be a string')
  if (!isAbsent(parameters) && !isJsonObject(parameters))
    refusals.add(`${path}.function.parameters`, 'must be an object')
  return {
    type: 'function',
    function: {
      name: name ?? '',
      ...(isAbsent(description) ? undefined : { description }),
      ...toParameters(parameters, `${path}.function.parameters`, { refusals, strict }),
    },
  }
}

/** Chat permits `strict` only with closed objects that require all of their properties. */
function toParameters(
  parameters: JsonValue | undefined,
  path: string,
  { refusals, strict }: { refusals: Refusals; strict: JsonValue | undefined },
): JsonObject | undefined {
  if (isAbsent(parameters)) return undefined
  if (strict !== true || !isJsonObject(parameters)) return { parameters }
  const closed = closeSchema(parameters)
  if (closed === undefined) {
    refusals.add(path, 'must be a schema of at most 64 levels')
    return undefined
  }
  return closed.requiresAll ? { parameters: closed.schema, strict: true } : { parameters }
}
