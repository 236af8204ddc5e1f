import { isToken } from '../../lib/http-token.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../lib/json/json.ts'
import type { Attribute } from '../../telemetry/otlp/encode.ts'
import type { Environment } from '../load/environment.ts'

/**
 * Applies the variables of OpenTelemetry's exporters to `config.tracing`, in place, before validation. They
 * take precedence over the file, but start no export without the section. `report` receives mistakes in
 * variables.
 */
export function applyExporterEnvironment(
  value: unknown,
  env: Environment,
  report: (message: string) => void,
): void {
  const tracing = sectionOf(value)
  if (tracing === undefined) return
  const endpoint = variableOf(env, 'ENDPOINT')
  if (endpoint !== undefined) {
    tracing['otlpEndpoint'] = endpoint.value
    // The variable of a signal is the complete address; the general one is a base.
    const path = endpoint.name.includes('_TRACES_') ? pathOf(endpoint.value) : undefined
    if (path === undefined) delete tracing['path']
    else tracing['path'] = path
  }
  const protocol = variableOf(env, 'PROTOCOL')
  if (protocol !== undefined) applyProtocol(tracing, protocol, report)
  const headers = variableOf(env, 'HEADERS')
  if (headers !== undefined) applyHeaders(tracing, headers, report)
}

type Variable = { readonly name: string; readonly value: string }

const prefixes = ['OTLP_', 'OTEL_EXPORTER_OTLP_TRACES_', 'OTEL_EXPORTER_OTLP_']

/** The most specific variable of a setting. Empty variables are unset, as OpenTelemetry specifies. */
function variableOf(env: Environment, setting: string): Variable | undefined {
  for (const prefix of prefixes) {
    const name = `${prefix}${setting}`
    const value = env[name]?.trim() ?? ''
    if (value !== '') return { name, value }
  }
  return undefined
}

/** `config.tracing`; without a value it is a section whose settings are in the environment. */
function sectionOf(value: unknown): JsonObject | undefined {
  const config = isJsonObject(value) ? value['config'] : undefined
  if (!isJsonObject(config)) return undefined
  const { tracing } = config
  if (isJsonObject(tracing)) return tracing
  return undefined
}

function pathOf(endpoint: string): string | undefined {
  return URL.canParse(endpoint) ? new URL(endpoint).pathname : undefined
}

function applyProtocol(
  tracing: JsonObject,
  { name, value }: Variable,
  report: (message: string) => void,
): void {
  const protocol = value.toLowerCase()
  if (protocol === 'grpc') tracing['otlpProtocol'] = 'grpc'
  else if (protocol === 'http/protobuf' || protocol === 'http') tracing['otlpProtocol'] = 'http'
  else report(`the variable ${name} must be grpc or http/protobuf`)
}

function applyHeaders(
  tracing: JsonObject,
  { name, value }: Variable,
  report: (message: string) => void,
): void {
  // agentgateway also accepts a JSON object.
  const headers = value.startsWith('{') ? parseJsonObject(value) : listedHeaders(value)
  if (headers === undefined || !Object.keys(headers).every(isToken))
    report(`the variable ${name} must be a list of name=value, separated by commas`)
  else tracing['headers'] = headers
}

/** `name=value,name=value` with percent-encoded values, as in W3C Baggage; undefined if it is invalid. */
function listedHeaders(text: string): Record<string, string> | undefined {
  const headers: Record<string, string> = {}
  for (const pair of text.split(',')) {
    if (pair.trim() === '') continue
    const equals = pair.indexOf('=')
    if (equals <= 0) return undefined
    const value = decoded(pair.slice(equals + 1).trim())
    if (value === undefined) return undefined
    headers[pair.slice(0, equals).trim()] = value
  }
  return headers
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * Resource attributes of `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`. An invalid list is ignored as a
 * whole, as OpenTelemetry specifies.
 */
export function resourceOfEnvironment(env: Environment): readonly Attribute[] {
  const listed = listedHeaders(env['OTEL_RESOURCE_ATTRIBUTES'] ?? '') ?? {}
  const name = env['OTEL_SERVICE_NAME'] ?? ''
  return Object.entries(name === '' ? listed : { ...listed, 'service.name': name })
}
