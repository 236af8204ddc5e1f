import { compileCel } from '../../cel/cel.ts'
import { celVariablesOf } from '../../policies/registry/cel-variables.ts'
import {
  anyOfShapes,
  boolean,
  cel,
  enumeration,
  exactlyOne,
  type Infer,
  list,
  map,
  name,
  number,
  object,
  optional,
  secret,
  url,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import {
  type CollectorConfig,
  checkCollector,
  checkCollectorHeaders,
  collectorAddress,
  collectorFields,
} from './collector.ts'

/** Variables of sampling expressions, which are evaluated when the head of a request has arrived. */
export const samplingVariables: ReadonlySet<string> = new Set(['now', 'request', 'source'])

/** Variables of expressions that are evaluated at the end of a request. */
export const endVariables: ReadonlySet<string> = celVariablesOf('gateway', 'end')

const atEnd = [...endVariables]

/** A share of requests, a boolean, or an expression with one of them. */
function sampling(doc: string, standard: string) {
  return anyOfShapes(
    [
      boolean({ doc: 'All requests, or none.' }),
      number({ doc: 'Share of requests.' }, { min: 0, max: 1 }),
      cel({ doc: 'CEL expression whose value is a boolean or a share.' }, [...samplingVariables]),
    ],
    { doc, default: standard, example: 0.1 },
  )
}

const samplingFields = {
  randomSampling: optional(
    sampling(
      'Requests without `traceparent` that are recorded: `true`, a share from 0 to 1, or a CEL expression over `request` and `source`.',
      'false',
    ),
  ),
  clientSampling: optional(
    sampling('Requests with `traceparent` that are recorded, in the same forms.', 'true'),
  ),
}

/** `filter` of traces. */
export const tracingFilter = optional(
  cel(
    {
      doc: 'Recorded requests that are exported, decided at their end. An expression that fails is false.',
      example: 'response.code >= 500',
    },
    atEnd,
  ),
)

/** `frontendPolicies.tracing`. */
export const tracingSchema = exactlyOne(
  collectorAddress,
  {
    ...collectorFields('traces'),
    ...samplingFields,
    filter: tracingFilter,
    attributes: optional(
      map(cel({ doc: 'CEL expression.' }, atEnd), {
        doc: 'Attributes of the span of a request by name; `span.name` is its name. Evaluated at the end of the request; an expression without a value adds nothing.',
        example: { 'user.id': 'jwt.sub' },
      }),
    ),
    remove: optional(
      list(name({ doc: 'Name of an attribute.' }), { doc: 'Attributes that spans do not have.' }),
    ),
    resources: optional(
      map(cel({ doc: 'CEL expression without variables.' }, []), {
        doc: 'Attributes of the process, such as `service.name`.',
        example: { 'service.name': '"tollgate"' },
      }),
    ),
  },
  { doc: 'Exports traces of requests to an OpenTelemetry collector (OTLP).' },
)

export type TracingConfig = Infer<typeof tracingSchema>

/** `config.tracing`. */
export const processTracingSchema = object(
  {
    otlpEndpoint: url({
      doc: 'Address of the collector. With `otlpProtocol: http`, `/v1/traces` is added unless the path ends with `/traces` or `path` is set.',
      example: 'http://localhost:4317',
    }),
    otlpProtocol: optional(
      enumeration(['grpc', 'http'], {
        doc: 'Protocol of the collector: OTLP over gRPC, or over HTTP with protobuf bodies.',
        default: 'grpc',
      }),
    ),
    headers: optional(
      map(secret({ doc: 'Value of the header.' }), {
        doc: 'Headers of requests to the collector, for example credentials.',
        example: { authorization: 'Basic $LANGFUSE_AUTH' },
      }),
    ),
    path: optional(name({ doc: 'Path of requests over HTTP.', default: '/v1/traces' })),
    ...samplingFields,
    fields: optional(
      object(
        {
          add: optional(
            map(cel({ doc: 'CEL expression.' }, atEnd), {
              doc: 'Attributes of the span of a request by name; `span.name` is its name.',
            }),
          ),
          remove: optional(
            list(name({ doc: 'Name of an attribute.' }), { doc: 'Attributes that spans do not have.' }),
          ),
        },
        { doc: 'Changes of attributes.' },
      ),
    ),
  },
  {
    doc: 'Exports traces of requests. `frontendPolicies.tracing` has more fields and takes precedence. Applies on reload.',
  },
)

export type ProcessTracingConfig = Infer<typeof processTracingSchema>

/** The one form of both sections. */
export type TracingSettings = {
  /** Configuration path, for messages and metrics. */
  readonly place: string
  readonly collector: CollectorConfig
  readonly randomSampling: boolean | number | string
  readonly clientSampling: boolean | number | string
  readonly filter: string | undefined
  readonly attributes: Readonly<Record<string, string>>
  readonly removed: readonly string[]
  readonly resources: Readonly<Record<string, string>>
}

/** Sections with tracing. */
export type TracingSections = {
  readonly tracing?: TracingConfig | undefined
  readonly processTracing?: ProcessTracingConfig | undefined
}

/** Settings of tracing; undefined without both sections. */
export function tracingSettingsOf({ tracing, processTracing }: TracingSections): TracingSettings | undefined {
  if (tracing !== undefined) {
    return {
      place: 'frontendPolicies.tracing',
      collector: tracing,
      randomSampling: tracing.randomSampling ?? false,
      clientSampling: tracing.clientSampling ?? true,
      filter: tracing.filter,
      attributes: tracing.attributes ?? {},
      removed: tracing.remove ?? [],
      resources: tracing.resources ?? {},
    }
  }
  if (processTracing === undefined) return undefined
  const { fields } = processTracing
  return {
    place: 'config.tracing',
    collector: collectorOf(processTracing),
    randomSampling: processTracing.randomSampling ?? false,
    clientSampling: processTracing.clientSampling ?? true,
    filter: undefined,
    attributes: fields?.add ?? {},
    removed: fields?.remove ?? [],
    resources: {},
  }
}

const collectors = new WeakMap<ProcessTracingConfig, CollectorConfig>()

/** The collector of `config.tracing`: one object for each, so that its egress policy is that of the file. */
function collectorOf(config: ProcessTracingConfig): CollectorConfig {
  const known = collectors.get(config)
  if (known !== undefined) return known
  const { protocol, hostname, port, pathname } = new URL(config.otlpEndpoint)
  const isTls = protocol === 'https:'
  const base = pathname.replace(/\/+$/, '')
  const collector = {
    host: `${hostname}:${port === '' ? (isTls ? 443 : 80) : port}`,
    protocol: config.otlpProtocol,
    path: config.path ?? (base.endsWith('/traces') ? base : `${base}/v1/traces`),
    headers: config.headers,
    policies: isTls ? { backendTLS: {} } : undefined,
  }
  collectors.set(config, collector)
  return collector
}

/** Reports problems of `frontendPolicies.tracing` that the schema cannot express. */
export function checkTracing(
  config: TracingConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  checkCollector(config, backends, report)
  for (const key of ['randomSampling', 'clientSampling'] as const) checkSampling(config[key], [key], report)
}

/** Reports problems of `config.tracing` that the schema cannot express. */
export function checkProcessTracing(config: ProcessTracingConfig, report: ReportIssue): void {
  checkCollector({ path: config.path }, [], report)
  checkCollectorHeaders(config.headers, report)
  for (const key of ['randomSampling', 'clientSampling'] as const) checkSampling(config[key], [key], report)
}

/** A constant expression must be a boolean or a share. */
function checkSampling(
  value: boolean | number | string | undefined,
  path: string[],
  report: ReportIssue,
): void {
  if (typeof value !== 'string') return
  const compiled = compileCel(value, samplingVariables)
  if (compiled.kind === 'issue' || compiled.program.roots.size > 0) return
  const constant = constantOf(value)
  if (typeof constant === 'boolean') return
  if (typeof constant !== 'number' || constant < 0 || constant > 1)
    report(path, 'must be true, false or a number from 0 to 1')
}

/** Value of an expression without variables; undefined if it fails. */
export function constantOf(source: string): unknown {
  const compiled = compileCel(source, samplingVariables)
  if (compiled.kind === 'issue' || compiled.program.roots.size > 0) return undefined
  try {
    return compiled.program.evaluate({})
  } catch {
    return undefined
  }
}
