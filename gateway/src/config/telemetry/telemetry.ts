import { createHash } from 'node:crypto'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { RetainedFacts } from '../../pipeline/facts/retained-facts.ts'
import type { RequestTelemetry } from '../../pipeline/tracing/tracing.ts'
import type { Attribute } from '../../telemetry/otlp/encode.ts'
import type { Config } from '../schema.ts'
import { accessLogSources, compileAccessLog } from './compile-access-log.ts'
import { compileTracing, type ProcessIdentity } from './compile-tracing.ts'
import { compileMetricLabels } from './metrics-config.ts'
import { tracingSettingsOf } from './tracing-config.ts'

/** Facts of the process that telemetry contains. */
export type TelemetryFacts = {
  readonly version: string
  readonly resource?: readonly Attribute[] | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
}

/** Identity of the process in telemetry. */
export function identityOf(
  { config }: Config,
  { processKey }: Pick<CompileContext, 'processKey'>,
  { version, resource = [], labels = {} }: TelemetryFacts,
): ProcessIdentity {
  const instance = createHash('sha256').update(processKey).digest('hex').slice(0, 32)
  return { version, instance, resource, labels, sensitive: sensitiveHeadersOf(config ?? {}) }
}

/** Compiles the telemetry of requests; undefined if nothing is configured. Throws if a file is unreadable. */
export function compileTelemetry(
  { config, frontendPolicies }: Config,
  context: CompileContext,
  identity: ProcessIdentity,
): RequestTelemetry | undefined {
  const settings = tracingSettingsOf({
    tracing: frontendPolicies?.tracing,
    processTracing: config?.tracing,
  })
  const log = { accessLog: frontendPolicies?.accessLog, logging: config?.logging }
  const accessLog = compileAccessLog(log, context, identity)
  const labels = compileMetricLabels(context, identity)
  if (settings === undefined && accessLog === undefined && labels === undefined) return undefined
  const ofLog = [...accessLogSources(log), ...Object.values(identity.labels)]
  const ofTraces =
    settings === undefined ? [] : [settings.filter ?? '', ...Object.values(settings.attributes)]
  return {
    tracing: settings && compileTracing(settings, context, identity),
    accessLog,
    labels,
    retains: { always: retainedFacts(ofLog), sampled: retainedFacts([...ofLog, ...ofTraces]) },
  }
}

/** `config.sensitiveHeaders` in lower case. */
export function sensitiveHeadersOf({
  sensitiveHeaders,
}: Pick<NonNullable<Config['config']>, 'sensitiveHeaders'>): ReadonlySet<string> {
  return new Set(sensitiveHeaders?.map((name) => name.toLowerCase()))
}

/** Facts that expressions read. Their sources contain the bodies of the functions that they call. */
function retainedFacts(sources: readonly string[]): RetainedFacts {
  const names = (name: string) => sources.some((source) => source.includes(name))
  const readsAll = names('variables')
  return {
    response: readsAll || names('response'),
    mcpContent: readsAll || names('mcp'),
    llmTexts: readsAll || names('prompt') || names('completion'),
  }
}
