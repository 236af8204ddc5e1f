import type { CompileContext } from '../../pipeline/compile-context.ts'
import {
  type AccessLogRules,
  type ConfiguredAccessLog,
  createAccessLog,
} from '../../pipeline/tracing/configured-access-log.ts'
import type { AccessLogConfig, LoggingFieldsConfig } from './access-log-config.ts'
import {
  compileExpression,
  compileField,
  exporterOf,
  type ProcessIdentity,
  resourceOf,
} from './compile-tracing.ts'

/** Sections with changes of the access log. */
export type AccessLogSections = {
  readonly accessLog: AccessLogConfig | undefined
  readonly logging: LoggingFieldsConfig | undefined
}

/** Names of agentgateway's fields with ours. */
const aliases: Readonly<Record<string, readonly string[]>> = {
  'http.method': ['method'],
  'http.path': ['path'],
  'http.status': ['status'],
  'src.addr': ['client'],
  duration: ['durationMs'],
  'trace.id': ['traceId'],
  'span.id': ['spanId'],
  'request.id': ['requestId'],
  'mcp.method.name': ['mcpMethod'],
  'mcp.target': ['mcpTarget'],
  'gen_ai.tool.name': ['mcpItem'],
  'mcp.resource.uri': ['mcpItem'],
  'gen_ai.provider.name': ['provider'],
  'gen_ai.request.model': ['model'],
  'gen_ai.usage.input_tokens': ['inputTokens'],
  'gen_ai.usage.output_tokens': ['outputTokens'],
}

/** Compiles the access log; undefined without changes. */
export function compileAccessLog(
  { accessLog, logging }: AccessLogSections,
  context: CompileContext,
  identity: ProcessIdentity,
): ConfiguredAccessLog | undefined {
  const changes = logging?.filter !== undefined || logging?.fields !== undefined
  if (accessLog === undefined && !changes) return undefined
  const place = accessLog === undefined ? 'config.logging' : 'frontendPolicies.accessLog'
  const rules = compileRules(
    {
      filter: accessLog?.filter ?? logging?.filter,
      add: { ...logging?.fields?.add, ...accessLog?.add },
      remove: [...(logging?.fields?.remove ?? []), ...(accessLog?.remove ?? [])],
    },
    place,
    context,
  )
  const otlp = accessLog?.otlp
  const { sensitive } = identity
  if (otlp === undefined) return createAccessLog({ rules, otlp: undefined, sensitive })
  const own = compileRules({ filter: otlp.filter, ...otlp.fields }, `${place}.otlp`, context)
  const resource = resourceOf({}, identity)
  const exporter = exporterOf({ signal: 'logs', collector: otlp, resource, identity }, context)
  const { added, removed } = otlp.fields === undefined ? rules : own
  return createAccessLog({ rules, sensitive, otlp: { filter: own.filter, added, removed, exporter } })
}

type RulesConfig = {
  readonly filter: string | undefined
  readonly add?: Readonly<Record<string, string>> | undefined
  readonly remove?: readonly string[] | undefined
}

function compileRules(
  { filter, add = {}, remove = [] }: RulesConfig,
  place: string,
  context: CompileContext,
): AccessLogRules {
  const names = [...remove, ...Object.keys(add)]
  return {
    filter: filter === undefined ? undefined : compileExpression(filter, `${place}.filter`, context),
    added: Object.entries(add).map(([name, source]) =>
      compileField(name, source, { place: `${place}.add`, context }),
    ),
    removed: new Set([...names, ...remove.flatMap((name) => aliases[name] ?? [])]),
  }
}

/** Sources of all expressions of the access log. */
export function accessLogSources({ accessLog, logging }: AccessLogSections): string[] {
  const { otlp } = accessLog ?? {}
  return [
    ...[accessLog?.filter, logging?.filter, otlp?.filter].flatMap((source) => source ?? []),
    ...[accessLog?.add, logging?.fields?.add, otlp?.fields?.add].flatMap((add) => Object.values(add ?? {})),
  ]
}
