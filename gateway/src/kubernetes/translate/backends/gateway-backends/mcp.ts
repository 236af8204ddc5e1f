import type { McpBackendConfig, TargetConfig } from '../../../../backends/mcp/config.ts'
import { parseYaml } from '../../../../config/yaml/yaml.ts'
import { readJsonObject } from '../../../../lib/json/text.ts'
import { messageOf } from '../../../../lib/thrown.ts'
import type { Path } from '../../../../schema/path.ts'
import type { BackendPolicies } from '../../../../upstream/config.ts'
import { fileValue } from '../../../own-kinds/enumerations.ts'
import type { McpSpec, TargetSpec } from '../../../own-kinds/gateway-backend.ts'
import type { ServiceBackend } from '../services.ts'
import { reportBroken, reportMistake, type Translation, translatePart } from './findings.ts'
import { translateHost } from './hosts.ts'
import { findService } from './service-references.ts'
import { translatePolicies } from './settings.ts'

/** A Service that a target refers to, as a backend of its own: it has the policies of the target. */
export type TargetService = {
  /** Name in the `backends` section. */
  readonly name: string
  readonly backend: ServiceBackend
  readonly policies: BackendPolicies | undefined
}

export type McpTranslation = {
  readonly config: McpBackendConfig
  readonly services: readonly TargetService[]
}

/** A target with its transport and path, by the name of its server. */
type Target = { readonly config: TargetConfig; readonly service: TargetService | undefined }

/**
 * Translates `mcp`. A target with a broken reference counts as a failing target: with FailOpen it is left
 * out, with FailClosed the backend is not usable (undefined). `name` is the name of the backend.
 */
export function translateMcp(
  mcp: McpSpec,
  name: string,
  translation: Translation,
): McpTranslation | undefined {
  const { targets: written, statefulMode, prefixMode, failureMode, ...others } = mcp
  let broken = 0
  const targets = written.flatMap((target, index) => {
    const { value, isUsable } = translatePart(translation, () =>
      translateTarget(target, ['spec', 'mcp', 'targets', index], { name, translation }),
    )
    if (isUsable) return value
    broken++
    return []
  })
  if (targets.length === 0 && broken === 0) {
    const message = 'no Service matches the selectors'
    reportBroken(translation, ['spec', 'mcp', 'targets'], { reason: 'BackendNotFound', message })
  }
  if (targets.length === 0 || (broken > 0 && failureMode !== 'FailOpen')) return undefined
  return {
    config: {
      targets: targets.map(({ config }) => config),
      ...others,
      ...(statefulMode && { statefulMode: fileValue(statefulMode) }),
      ...prefixOf(prefixMode, {
        varies: broken > 0 || written.some(({ selector }) => selector !== undefined),
        count: targets.length,
      }),
      ...(failureMode && { failureMode: fileValue(failureMode) }),
    },
    services: targets.flatMap(({ service }) => service ?? []),
  }
}

/** The names of tools must not depend on the current number of targets. */
function prefixOf(
  prefixMode: McpSpec['prefixMode'],
  { varies, count }: { varies: boolean; count: number },
): Pick<McpBackendConfig, 'prefixMode'> {
  const isConditional = prefixMode === undefined || prefixMode === 'Conditional'
  if (varies && count === 1 && isConditional) return { prefixMode: 'always' }
  return prefixMode === undefined ? {} : { prefixMode: fileValue(prefixMode) }
}

type Context = { readonly name: string; readonly translation: Translation }

function translateTarget(target: TargetSpec, path: Path, context: Context): Target[] {
  const { translation } = context
  const { static: server, backendRef, selector, protocol, schemaRef } = target
  if ((protocol === 'OpenAPI') !== (schemaRef !== undefined)) {
    reportMistake(translation, [...path, 'schemaRef'], 'is for the protocol OpenAPI, which requires it')
  }
  if (selector !== undefined) return selectedTargets(target, path, context)
  if (server !== undefined) {
    translateHost(server, [...path, 'static', 'host'], translation)
    const policies = targetPolicies(target, path, translation)
    const config = targetConfig(target, path, server, translation)
    return [{ config: { ...config, ...(policies && { policies }) }, service: undefined }]
  }
  const backend = findService(backendRef, [...path, 'backendRef'], translation)
  return backend === undefined ? [] : [serviceTarget(target, path, backend, context)]
}

/** Fields of a target that do not depend on the kind of its server. */
type TargetFields = Pick<TargetSpec, 'name' | 'path' | 'protocol' | 'schemaRef' | 'policies'>

function serviceTarget(
  target: TargetFields,
  path: Path,
  backend: ServiceBackend,
  { name: owner, translation }: Context,
): Target {
  const name = `${owner}/${target.name}`
  const config = targetConfig(target, path, { backend: `/${name}` }, translation)
  return { config, service: { name, backend, policies: targetPolicies(target, path, translation) } }
}

/** Application protocols of Service ports that serve MCP. */
const protocols: ReadonlyMap<string | undefined, 'StreamableHTTP' | 'SSE'> = new Map([
  ['tollgate.dev/mcp', 'StreamableHTTP'],
  ['tollgate.dev/mcp-sse', 'SSE'],
])

function selectedTargets(target: TargetSpec, path: Path, context: Context): Target[] {
  const { selector, name, ...common } = target
  const { translation } = context
  if (selector === undefined) return []
  const services = translation.lookups.servicesWith(selector.matchLabels)
  return services.flatMap(({ metadata, spec: { ports = [] } }) => {
    const marked = ports.filter(({ appProtocol }) => protocols.has(appProtocol))
    const chosen = marked.length === 0 && ports.length === 1 ? ports : marked
    if (chosen.length === 0) {
      const message = `Service ${metadata.namespace}/${metadata.name} must have one port, or a port with the appProtocol tollgate.dev/mcp`
      reportBroken(translation, [...path, 'selector'], { reason: 'UnsupportedProtocol', message })
    }
    return chosen.flatMap(({ port, appProtocol }) => {
      const reference = { name: metadata.name, port }
      const backend = findService(reference, [...path, 'selector'], translation)
      if (backend === undefined) return []
      const suffix = chosen.length === 1 ? '' : `-${port}`
      const protocol = protocols.get(appProtocol)
      const own = {
        ...common,
        ...(protocol && common.protocol === undefined && { protocol }),
        name: `${name}-${metadata.name}${suffix}`,
      }
      return [serviceTarget(own, path, backend, context)]
    })
  })
}

type Address = { readonly host: string; readonly port: number } | { readonly backend: string }

function targetConfig(
  target: TargetFields,
  path: Path,
  address: Address,
  translation: Translation,
): TargetConfig {
  const { name, protocol } = target
  const server = { ...address, ...(target.path !== undefined && { path: target.path }) }
  if (protocol === 'SSE') return { name, sse: server }
  if (protocol !== 'OpenAPI') return { name, mcp: server }
  return { name, openapi: { ...server, schema: readDocument(target, path, translation) } }
}

const defaultDocument = 'openapi.yaml'

function readDocument({ schemaRef }: TargetFields, path: Path, translation: Translation) {
  if (schemaRef === undefined) return {}
  const { name, key = defaultDocument } = schemaRef
  const place = [...path, 'schemaRef']
  const found = translation.lookups.configMap(name)
  if (found.kind === 'missing') {
    reportBroken(translation, place, found)
    return {}
  }
  const text = found.value.data?.[key]
  if (text === undefined) {
    const message = `ConfigMap ${translation.lookups.namespace}/${name} has no entry ${key}`
    reportBroken(translation, place, { reason: 'InvalidRef', message })
    return {}
  }
  const document = parseDocument(text)
  if (document.kind === 'document') return document.value
  const message = `entry ${key} of ConfigMap ${translation.lookups.namespace}/${name} ${document.problem}`
  reportBroken(translation, place, { reason: 'InvalidRef', message })
  return {}
}

/** A deep YAML text of this size takes less than a second; JSON is bounded by the size of a ConfigMap. */
const maxYamlCharacters = 131_072
const jsonLimits = { maxDepth: 100, maxMembers: 100_000, maxElements: 200_000 }

type ReadText = { kind: 'document'; value: Record<string, unknown> } | { kind: 'invalid'; problem: string }

function parseDocument(text: string): ReadText {
  if (/^\s*\{/.test(text)) {
    const json = readJsonObject(text, jsonLimits)
    if (json.kind === 'object') return { kind: 'document', value: json.value }
  }
  if (text.length > maxYamlCharacters) {
    const problem = `must be JSON of at most ${jsonLimits.maxDepth} levels, or YAML of at most ${maxYamlCharacters} characters`
    return { kind: 'invalid', problem }
  }
  try {
    const value = parseYaml(text)
    // The document is checked with the other fields of the Config.
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { kind: 'document', value: value as Record<string, unknown> }
    }
    return { kind: 'invalid', problem: 'must be an OpenAPI document' }
  } catch (error) {
    return { kind: 'invalid', problem: `is not YAML: ${messageOf(error)}` }
  }
}

function targetPolicies(
  { policies }: TargetFields,
  path: Path,
  translation: Translation,
): BackendPolicies | undefined {
  return policies && translatePolicies(policies, [...path, 'policies'], translation)
}
