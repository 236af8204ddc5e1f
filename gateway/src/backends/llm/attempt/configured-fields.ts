import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from '../../../lib/json/json.ts'
import type { Target } from '../models/target.ts'
import type { ClientEndpoint, Endpoint } from '../request/endpoints.ts'
import { isGeminiEndpoint } from '../request/gemini-path.ts'

/** Fields of the configuration: JSON texts by field, and fields of the client that are not sent. */
export type ConfiguredFields = Pick<Target, 'overrides' | 'defaults' | 'removed'>

const none: ReadonlySet<string> = new Set()

/** Applies the configured fields. */
export function setConfigured(
  body: JsonObject,
  { overrides, removed = none, defaults }: ConfiguredFields,
): void {
  for (const [name, text] of overrides) body[name] = JSON.parse(text)
  for (const name of removed) delete body[name]
  for (const [name, text] of defaults) if (!Object.hasOwn(body, name)) body[name] = JSON.parse(text)
}

/** Members of `inferenceConfig` by the names of chat completions, messages and responses. */
const inferenceNames: ReadonlyMap<string, string> = new Map([
  ['max_tokens', 'maxTokens'],
  ['max_completion_tokens', 'maxTokens'],
  ['max_output_tokens', 'maxTokens'],
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['stop', 'stopSequences'],
  ['stop_sequences', 'stopSequences'],
])

/** Fields of the request that only the Converse API has. */
const converseNames: ReadonlySet<string> = new Set([
  ...['inferenceConfig', 'toolConfig', 'outputConfig', 'guardrailConfig', 'promptVariables'],
  ...['additionalModelRequestFields', 'additionalModelResponseFieldPaths'],
  ...['requestMetadata', 'performanceConfig', 'serviceTier'],
])

/** The path of a Converse request has them. */
const pathNames: ReadonlySet<string> = new Set(['model', 'stream'])

/** Other fields at the top of a Converse request, which refuses unknown ones. */
const topNames: ReadonlySet<string> = new Set(['messages', 'system', ...converseNames])

/**
 * The configured fields for a Converse request: settings that all APIs have become members of
 * `inferenceConfig`, and fields that only the model reads of `additionalModelRequestFields`.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 */
export function converseFields(body: JsonObject, fields: ConfiguredFields): ConfiguredFields {
  const all = inferenceFields(body, fields)
  const ofModel = fieldsNamed(all, (name) => !topNames.has(name))
  const { overrides, defaults, removed = none } = ofModel
  if (overrides.size + defaults.size + removed.size === 0) return all
  const top = fieldsNamed(all, (name) => topNames.has(name))
  const member = 'additionalModelRequestFields'
  const given = configuredObject(all.overrides, member) ?? body[member] ?? {}
  // The service refuses other values.
  if (!isJsonObject(given)) return top
  const added = { ...configuredObject(all.defaults, member), ...given }
  setConfigured(added, ofModel)
  return { ...top, overrides: new Map(top.overrides).set(member, JSON.stringify(added)) }
}

/** The configured fields without the form of the response, of calls whose path has it. */
export function withoutStream(fields: ConfiguredFields): ConfiguredFields {
  const { overrides, defaults, removed = none } = fields
  const isConfigured = overrides.has('stream') || defaults.has('stream') || removed.has('stream')
  return isConfigured ? fieldsNamed(fields, (name) => name !== 'stream') : fields
}

/** Settings that all APIs have become members of `inferenceConfig`, other fields are unchanged. */
function inferenceFields(body: JsonObject, fields: ConfiguredFields): ConfiguredFields {
  const others = fieldsNamed(fields, (name) => !inferenceNames.has(name) && !pathNames.has(name))
  const config = inferenceConfig(body, fields)
  if (config === undefined) return others
  const overrides = new Map(others.overrides).set('inferenceConfig', JSON.stringify(config))
  return { ...others, overrides }
}

/** The configured fields of a translated call: in the API of the client, and in that of the provider. */
export function fieldsAround(
  body: JsonObject,
  endpoint: ClientEndpoint | 'passthrough',
  fields: ConfiguredFields,
): { before?: ConfiguredFields; after?: ConfiguredFields } {
  // Settings of these requests are not at their top, where those of other APIs are.
  if (isGeminiEndpoint(endpoint)) return { after: fields }
  if (endpoint === 'converse_count') return {}
  if (endpoint !== 'converse') return { before: fields }
  const all = inferenceFields(body, fields)
  return {
    before: fieldsNamed(all, (name) => converseNames.has(name)),
    after: fieldsNamed(all, (name) => !converseNames.has(name)),
  }
}

/** Names of the limit in chat completions and messages. */
const limitNames: ReadonlySet<string> = new Set(['max_tokens', 'max_completion_tokens'])

/** The configured fields for a body of an API; a limit has its name in the Responses API. */
export function namedFor(upstream: Endpoint, fields: ConfiguredFields): ConfiguredFields {
  if (upstream !== 'responses') return fields
  const nameOf = (name: string) => (limitNames.has(name) ? 'max_output_tokens' : name)
  const renamed = (texts: ReadonlyMap<string, string>) =>
    new Map([...texts].map(([name, text]) => [nameOf(name), text]))
  const { overrides, defaults, removed = none } = fields
  return {
    overrides: renamed(overrides),
    defaults: renamed(defaults),
    removed: new Set([...removed].map(nameOf)),
  }
}

/** `inferenceConfig` with the configured settings; undefined without any. */
function inferenceConfig(
  body: JsonObject,
  { overrides, defaults, removed = none }: ConfiguredFields,
): JsonObject | undefined {
  const names = [...inferenceNames]
  if (!names.some(([name]) => overrides.has(name) || defaults.has(name) || removed.has(name)))
    return undefined
  const member = 'inferenceConfig'
  const given =
    configuredObject(overrides, member) ?? body[member] ?? configuredObject(defaults, member) ?? {}
  // The service refuses other values.
  if (!isJsonObject(given)) return undefined
  const config = { ...given }
  for (const [name, setting] of names) setMember(config, setting, overrides.get(name))
  for (const [name, setting] of names) if (removed.has(name)) delete config[setting]
  for (const [name, setting] of names)
    if (!Object.hasOwn(config, setting)) setMember(config, setting, defaults.get(name))
  return config
}

function configuredObject(fields: ReadonlyMap<string, string>, member: string): JsonObject | undefined {
  const text = fields.get(member)
  return text === undefined ? undefined : parseJsonObject(text)
}

/** Sets a member from a JSON text; `null` is the default of the service. */
function setMember(config: JsonObject, member: string, text: string | undefined): void {
  if (text === undefined) return
  const value: JsonValue = JSON.parse(text)
  if (value === null) delete config[member]
  else config[member] = member === 'stopSequences' && !Array.isArray(value) ? [value] : value
}

function fieldsNamed(
  { overrides, defaults, removed = none }: ConfiguredFields,
  isIncluded: (name: string) => boolean,
): ConfiguredFields {
  const included = (fields: ReadonlyMap<string, string>) =>
    new Map([...fields].filter(([name]) => isIncluded(name)))
  return {
    overrides: included(overrides),
    defaults: included(defaults),
    removed: new Set([...removed].filter(isIncluded)),
  }
}
