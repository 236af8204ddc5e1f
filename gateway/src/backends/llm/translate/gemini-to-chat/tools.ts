import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import { objectAt, objectsAt } from './fields.ts'
import { toJsonSchema } from './schema.ts'

/** Functions and the choice among them, in the fields of chat. */
export type ChatTools = { readonly tools: JsonObject[] | undefined; readonly choice: JsonValue | undefined }

/** Translates `tools` and `toolConfig`. A choice of several functions removes the others. */
export function toChatTools({ tools, toolConfig }: JsonObject, refusals: Refusals): ChatTools {
  const declared = objectsAt(tools, 'tools', refusals).flatMap(([tool, path]) => {
    refusals.addUnknown(tool, toolFields, path)
    const declarations = objectsAt(tool.functionDeclarations, `${path}.functionDeclarations`, refusals)
    return declarations.map(([declaration, at]) => toChatTool(declaration, at, refusals))
  })
  const { choice, allowed } = readConfig(toolConfig, refusals)
  const permitted = allowed === undefined ? declared : declared.filter(({ name }) => allowed.has(name))
  if (allowed !== undefined && permitted.length < allowed.size)
    refusals.add(
      'toolConfig.functionCallingConfig.allowedFunctionNames',
      'must be names of functionDeclarations',
    )
  if (permitted.length === 0) return { tools: undefined, choice: undefined }
  return { tools: permitted.map(({ tool }) => tool), choice }
}

const toolFields: ReadonlySet<string> = new Set(['functionDeclarations'])

const declarationFields: ReadonlySet<string> = new Set([
  ...['name', 'description', 'parameters', 'parametersJsonSchema', 'behavior'],
  // Schemas of results, which have no counterpart and are optional.
  ...['response', 'responseJsonSchema'],
])

function toChatTool(
  declaration: JsonObject,
  path: string,
  refusals: Refusals,
): { name: JsonValue; tool: JsonObject } {
  refusals.addUnknown(declaration, declarationFields, path)
  const { name, description, behavior } = declaration
  if (typeof name !== 'string') refusals.add(`${path}.name`, 'must be a string')
  if (behavior === 'NON_BLOCKING') refusals.add(`${path}.behavior`, 'must be BLOCKING')
  const parameters = toParameters(declaration, path, refusals)
  return {
    name: name ?? '',
    tool: {
      type: 'function',
      function: {
        name: name ?? '',
        ...(isAbsent(description) ? undefined : { description }),
        ...(parameters === undefined ? undefined : { parameters }),
      },
    },
  }
}

function toParameters(
  { parameters, parametersJsonSchema }: JsonObject,
  path: string,
  refusals: Refusals,
): JsonObject | undefined {
  if (isJsonObject(parametersJsonSchema)) return parametersJsonSchema
  if (!isAbsent(parametersJsonSchema)) refusals.add(`${path}.parametersJsonSchema`, 'must be an object')
  if (isAbsent(parameters)) return undefined
  const schema = isJsonObject(parameters) ? toJsonSchema(parameters) : undefined
  if (schema === undefined) refusals.add(`${path}.parameters`, 'must be a schema of at most 64 levels')
  return schema
}

const configFields: ReadonlySet<string> = new Set(['functionCallingConfig'])
const callingFields: ReadonlySet<string> = new Set([
  ...['mode', 'allowedFunctionNames'],
  // A form of streams that no event of the translation has.
  'streamFunctionCallArguments',
])

const modes: ReadonlyMap<JsonValue, string> = new Map([
  ['AUTO', 'auto'],
  ['VALIDATED', 'auto'],
  ['MODE_UNSPECIFIED', 'auto'],
  ['ANY', 'required'],
  ['NONE', 'none'],
])

type Choice = { choice: JsonValue | undefined; allowed: ReadonlySet<JsonValue> | undefined }

function readConfig(config: JsonValue | undefined, refusals: Refusals): Choice {
  if (isAbsent(config)) return { choice: undefined, allowed: undefined }
  const outer = objectAt(config, 'toolConfig', refusals)
  refusals.addUnknown(outer, configFields, 'toolConfig')
  if (isAbsent(outer.functionCallingConfig)) return { choice: undefined, allowed: undefined }
  const path = 'toolConfig.functionCallingConfig'
  const calling = objectAt(outer.functionCallingConfig, path, refusals)
  refusals.addUnknown(calling, callingFields, path)
  const { mode, allowedFunctionNames: names } = calling
  const choice = isAbsent(mode) ? 'auto' : modes.get(typeof mode === 'string' ? mode.toUpperCase() : mode)
  if (choice === undefined) refusals.add(`${path}.mode`, 'must be AUTO, ANY, NONE or VALIDATED')
  if (isAbsent(names) || (Array.isArray(names) && names.length === 0)) return { choice, allowed: undefined }
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string')) {
    refusals.add(`${path}.allowedFunctionNames`, 'must be a list of strings')
    return { choice, allowed: undefined }
  }
  const [only] = names
  if (choice === 'required' && names.length === 1)
    return { choice: { type: 'function', function: { name: only ?? '' } }, allowed: undefined }
  return { choice, allowed: choice === 'none' ? undefined : new Set(names) }
}
