import { milliseconds } from '../../lib/duration.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { createMetricLabels } from '../../pipeline/tracing/metric-labels.ts'
import type { RequestTelemetry } from '../../pipeline/tracing/tracing.ts'
import {
  cel,
  duration,
  exactlyOne,
  type Infer,
  list,
  map,
  name,
  object,
  optional,
  secret,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { Exposition } from '../../telemetry/metrics/families.ts'
import { createMetrics } from '../../telemetry/metrics/metrics.ts'
import type { Exporter } from '../../telemetry/otlp/exporter.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import { checkCollector, checkCollectorHeaders, collectorAddress, collectorFields } from './collector.ts'
import { compileExpression, exporterOf, type ProcessIdentity, resourceOf } from './compile-tracing.ts'
import { endVariables } from './tracing-config.ts'

const defaultIntervalMs = 60_000
const minIntervalMs = 1_000

const otlp = exactlyOne(
  collectorAddress,
  {
    ...collectorFields('metrics'),
    headers: optional(
      map(secret({ doc: 'Value of the header.' }), {
        doc: 'Headers of requests to the collector, for example credentials.',
      }),
    ),
    interval: optional(duration({ doc: 'Time between exports.', default: '1m', example: '15s' })),
    resources: optional(
      map(cel({ doc: 'CEL expression without variables.' }, []), {
        doc: 'Attributes of the process, such as `service.name`.',
        example: { 'service.name': '"tollgate"' },
      }),
    ),
  },
  {
    doc: 'Exports the metrics of `/metrics` to an OpenTelemetry collector (OTLP), with cumulative counts. Applies on reload.',
  },
)

/** `config.metrics`. */
export const metricsSchema = object(
  {
    remove: optional(
      list(name({ doc: 'Name of a metric.' }), {
        doc: 'Metrics that are neither on `/metrics` nor exported.',
        example: ['tollgate_time_to_first_byte_seconds'],
      }),
    ),
    fields: optional(
      object(
        {
          add: optional(
            map(cel({ doc: 'CEL expression over the facts at the end of a request.' }, [...endVariables]), {
              doc: 'Further labels of the metrics of requests and LLM calls by name. At most 1,000 combinations of values are counted in each thread; others have the value `other`.',
              example: { user_id: 'apiKey.user' },
            }),
          ),
        },
        { doc: 'Labels, read at start.' },
      ),
    ),
    otlp: optional(otlp),
  },
  { doc: 'Metrics of the process.' },
)

export type MetricsConfig = Infer<typeof metricsSchema>

/** Reports problems of `config.metrics` that the schema cannot express. */
export function checkMetrics(
  { otlp: collector, fields, remove = [] }: MetricsConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  for (const label of Object.keys(fields?.add ?? {})) {
    if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) || label.startsWith('__'))
      report(['fields', 'add', label], 'must be a name of letters, digits and underscores')
    else if (ownLabels.has(label))
      report(['fields', 'add', label], 'is a label of the metric already: use another name')
  }
  const known =
    remove.length === 0
      ? new Set<string>()
      : new Set(
          createMetrics()
            .dump()
            .map((family) => family.name),
        )
  for (const [index, metric] of remove.entries()) {
    // Metrics of agentgateway do not exist here, so that they are removed.
    if (!known.has(metric) && !/^(?:agentgateway|tollgate_(?:process|nodejs))_/.test(metric))
      report(['remove', index], 'is not a metric: see docs/operations.md for their names')
  }
  if (collector === undefined) return
  const under: ReportIssue = (path, message) => report(['otlp', ...path], message)
  checkCollector(collector, backends, under)
  checkCollectorHeaders(collector.headers, under)
  const { interval } = collector
  if (interval !== undefined && (milliseconds(interval) ?? 0) < minIntervalMs)
    under(['interval'], 'must be at least 1s')
}

/** Labels of the metrics that `fields` extends. */
const ownLabels: ReadonlySet<string> = new Set([
  ...['route', 'status', 'le', 'model', 'provider', 'group', 'key_group'],
  ...['gen_ai_token_type', 'gen_ai_request_model', 'gen_ai_provider_name'],
])

/** Settings of `config` about metrics. */
type MetricSettings = {
  readonly metrics?: MetricsConfig | undefined
  readonly histograms?: Exposition['histograms']
}

/** The exposition of the metrics of the process. */
export function expositionOf({ metrics, histograms }: MetricSettings): Exposition {
  return { removed: new Set(metrics?.remove), labels: Object.keys(metrics?.fields?.add ?? {}), histograms }
}

/** Compiles the labels of requests; undefined without any. */
export function compileMetricLabels(
  context: CompileContext,
  { labels, sensitive }: ProcessIdentity,
): RequestTelemetry['labels'] {
  const entries = Object.entries(labels)
  if (entries.length === 0) return undefined
  const expressions = entries.map(([label, source]) =>
    compileExpression(source, `config.metrics.fields.add.${label}`, context),
  )
  return createMetricLabels(expressions, sensitive)
}

/** Interval of exports in milliseconds; undefined without an export. */
export function exportIntervalMs(config: MetricsConfig | undefined): number | undefined {
  return config?.otlp && (milliseconds(config.otlp.interval) ?? defaultIntervalMs)
}

/** Compiles the queue of metrics for the collector; undefined without one. */
export function compileMetricExport(
  config: MetricsConfig | undefined,
  context: CompileContext,
  identity: ProcessIdentity,
): Exporter | undefined {
  const collector = config?.otlp
  if (collector === undefined) return undefined
  const resource = resourceOf(collector.resources ?? {}, identity)
  return exporterOf({ signal: 'metrics', collector, resource, identity }, context)
}
