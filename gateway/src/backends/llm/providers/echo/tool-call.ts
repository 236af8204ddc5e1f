import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'

/** A function to call, with arguments that satisfy its schema as far as simple values can. */
export type ToolCall = { name: string; args: string }

/**
 * The call that a request demands: of the tool named in `tool_choice`, or of the first tool if it is
 * `required`. Undefined for a text response. That includes requests with a tool result, so that the loop of a
 * client ends.
 */
export function toolCallFor(
  { tools, tool_choice: choice }: JsonObject,
  hasToolResult: boolean,
): ToolCall | undefined {
  if (hasToolResult || !Array.isArray(tools)) return undefined
  const named = isJsonObject(choice) ? nameOf(choice) : undefined
  if (named === undefined && choice !== 'required') return undefined
  const functions = tools.filter(isJsonObject).map(functionOf)
  const chosen = functions.find((tool) => named === undefined || tool['name'] === named)
  const name = chosen?.['name']
  if (typeof name !== 'string') return undefined
  return { name, args: JSON.stringify(valueFor(chosen?.['parameters'], 0)) }
}

/** Chat completions nest the function, responses do not. */
function functionOf(tool: JsonObject): JsonObject {
  const { function: nested } = tool
  return isJsonObject(nested) ? nested : tool
}

function nameOf(choice: JsonObject): string | undefined {
  const { name } = functionOf(choice)
  return typeof name === 'string' ? name : undefined
}

const maxSchemaDepth = 8

function valueFor(schema: JsonValue | undefined, depth: number): JsonValue {
  if (!isJsonObject(schema)) return {}
  const { enum: choices, const: constant, type, properties, required } = schema
  if (constant !== undefined) return constant
  if (Array.isArray(choices) && choices[0] !== undefined) return choices[0]
  switch (Array.isArray(type) ? type[0] : type) {
    case 'string':
      return 'echo'
    case 'integer':
    case 'number':
      return typeof schema['minimum'] === 'number' ? schema['minimum'] : 1
    case 'boolean':
      return true
    case 'array':
      return depth < maxSchemaDepth && schema['items'] ? [valueFor(schema['items'], depth + 1)] : []
    case 'null':
      return null
    default:
      return objectFor(properties, required, depth)
  }
}

function objectFor(
  properties: JsonValue | undefined,
  required: JsonValue | undefined,
  depth: number,
): JsonObject {
  if (depth >= maxSchemaDepth || !isJsonObject(properties)) return {}
  const names = Array.isArray(required) ? required : Object.keys(properties)
  const value: [string, JsonValue][] = []
  for (const name of names) {
    if (typeof name === 'string' && Object.hasOwn(properties, name))
      value.push([name, valueFor(properties[name], depth + 1)])
  }
  return Object.fromEntries(value)
}
