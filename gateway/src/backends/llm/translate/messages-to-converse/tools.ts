import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import { cachePointOf } from './content.ts'

/**
 * `toolConfig` of the Converse API; undefined without tools. The service requires the definitions of all
 * tools in the conversation; those without one have an open schema.
 */
export function toToolConfig(
  { tools, tool_choice: choice }: JsonObject,
  messages: readonly JsonObject[],
  refusals: Refusals,
): JsonObject | undefined {
  const specs = isAbsent(tools) ? [] : toSpecs(tools, refusals)
  const known = new Set(specs.map(({ toolSpec }) => (isJsonObject(toolSpec) ? toolSpec.name : undefined)))
  const called = [...calledTools(messages)].filter((name) => !known.has(name))
  if (isJsonObject(choice) && choice.type === 'none') {
    if (calledTools(messages).size === 0) return undefined
    refusals.add('tool_choice', 'the Converse API cannot forbid the tools of a conversation with tool calls')
  }
  specs.push(...called.map((name) => ({ toolSpec: { name, inputSchema: openSchema } })))
  if (specs.length === 0) return undefined
  refuseSingleCalls(choice, specs.filter(({ toolSpec }) => toolSpec !== undefined).length, refusals)
  const toolChoice = toToolChoice(choice, refusals)
  return { tools: specs, ...(toolChoice === undefined ? undefined : { toolChoice }) }
}

const openSchema = { json: { type: 'object' } }

const toolFields: ReadonlySet<string> = new Set([
  ...['type', 'name', 'description', 'input_schema', 'strict', 'cache_control'],
  // Hints for loading, streaming and examples, which are optional.
  ...['defer_loading', 'eager_input_streaming', 'input_examples', 'allowed_callers'],
])

function toSpecs(tools: JsonValue, refusals: Refusals): JsonObject[] {
  if (!Array.isArray(tools)) {
    refusals.add('tools', 'must be a list')
    return []
  }
  return tools.flatMap((tool, index) => {
    const path = `tools[${index}]`
    if (!isJsonObject(tool)) {
      refusals.add(path, 'must be an object')
      return []
    }
    const cachePoint = cachePointOf(tool)
    const spec = { toolSpec: toSpec(tool, path, refusals) }
    return cachePoint === undefined ? [spec] : [spec, cachePoint]
  })
}

function toSpec(tool: JsonObject, path: string, refusals: Refusals): JsonObject {
  const { type, name, description, input_schema: schema, strict } = tool
  if (!isAbsent(type) && type !== 'custom')
    refusals.add(`${path}.type`, `tools of type "${type}" exist in the messages API only`)
  refusals.addUnknown(tool, toolFields, path)
  if (typeof name !== 'string') refusals.add(`${path}.name`, 'must be a string')
  if (!isJsonObject(schema)) refusals.add(`${path}.input_schema`, 'must be an object')
  return {
    name: name ?? '',
    ...(typeof description === 'string' && description !== '' ? { description } : undefined),
    inputSchema: { json: schema ?? {} },
    ...(strict === true ? { strict } : undefined),
  }
}

/** Structured output of clients is accepted: the response is the call of one forced tool. */
function refuseSingleCalls(choice: JsonValue | undefined, tools: number, refusals: Refusals): void {
  if (!isJsonObject(choice) || choice.disable_parallel_tool_use !== true) return
  if (choice.type === 'tool' || (choice.type === 'any' && tools === 1)) return
  const message = 'the Converse API cannot forbid parallel calls unless the choice forces one tool'
  refusals.add('tool_choice.disable_parallel_tool_use', message)
}

function toToolChoice(choice: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(choice)) return undefined
  const { type, name } = isJsonObject(choice) ? choice : {}
  switch (type) {
    case 'auto':
      return { auto: {} }
    case 'any':
      return { any: {} }
    case 'tool':
      return { tool: { name: name ?? '' } }
    case 'none':
      return undefined
    default:
      refusals.add('tool_choice', 'must be of type auto, any, none or tool with a name')
      return undefined
  }
}

/** Names of the tools that the conversation has called. */
function calledTools(messages: readonly JsonObject[]): Set<string> {
  const names = new Set<string>()
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue
    for (const block of content) {
      const call = isJsonObject(block) ? block.toolUse : undefined
      if (isJsonObject(call) && typeof call.name === 'string') names.add(call.name)
    }
  }
  return names
}
