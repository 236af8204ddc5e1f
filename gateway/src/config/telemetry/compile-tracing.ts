import { createHash, randomFillSync } from 'node:crypto'
import { compileCheckedCel } from '../../cel/checked.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import {
  attributeValue,
  type TelemetryExpression,
  telemetryExpression,
} from '../../pipeline/tracing/expressions.ts'
import { constantSample, evaluatedSample, type Sample } from '../../pipeline/tracing/sampling.ts'
import { type TelemetryField, telemetryField } from '../../pipeline/tracing/telemetry-fields.ts'
import { createTracing, type Tracing } from '../../pipeline/tracing/tracing.ts'
import { type Attribute, batchEncoder } from '../../telemetry/otlp/encode.ts'
import { createExporter, type Exporter } from '../../telemetry/otlp/exporter.ts'
import type { Signal } from '../../telemetry/otlp/transport.ts'
import { createTraceIds } from '../../telemetry/tracing/trace-context.ts'
import { type CollectorConfig, compileCollector } from './collector.ts'
import { constantOf, endVariables, samplingVariables, type TracingSettings } from './tracing-config.ts'

/** Process facts in the resource of telemetry. */
export type ProcessIdentity = {
  readonly version: string
  readonly instance: string
  /** Attributes of the environment. */
  readonly resource: readonly Attribute[]
  /** `config.metrics.fields.add` at the start of the process: names of labels do not change later. */
  readonly labels: Readonly<Record<string, string>>
  /** `config.sensitiveHeaders`, in lower case. */
  readonly sensitive: ReadonlySet<string>
}

/** Compiles tracing. Throws if a file in the policies of the collector is unreadable. */
export function compileTracing(
  settings: TracingSettings,
  context: CompileContext,
  identity: ProcessIdentity,
): Tracing {
  const { place, attributes, removed, filter, collector, resources } = settings
  const expression = (source: string, field: string) =>
    compileExpression(source, `${place}.${field}`, context)
  const added = Object.entries(attributes).map(([name, source]) =>
    compileField(name, source, { place: `${place}.attributes`, context }),
  )
  return createTracing({
    sensitive: identity.sensitive,
    randomSample: compileSample(settings.randomSampling, `${place}.randomSampling`, context),
    clientSample: compileSample(settings.clientSampling, `${place}.clientSampling`, context),
    filter: filter === undefined ? undefined : expression(filter, 'filter'),
    added,
    removed: new Set([...removed, ...Object.keys(attributes)]),
    exporter: exporterOf(
      { signal: 'traces', collector, resource: resourceOf(resources, identity), identity },
      context,
    ),
    ids: createTraceIds(randomFillSync),
    clock: context.clock,
  })
}

/** Compiles a field whose expression is evaluated at the end of a request. */
export function compileField(
  name: string,
  source: string,
  { place, context }: { readonly place: string; readonly context: CompileContext },
): TelemetryField {
  const meter = context.metrics.telemetry.expression(`${place}.${name}`)
  return telemetryField(name, compileCheckedCel(source, endVariables), meter)
}

/** Compiles an expression over the facts at the end of a request. */
export function compileExpression(
  source: string,
  place: string,
  { metrics }: CompileContext,
): TelemetryExpression {
  return telemetryExpression(compileCheckedCel(source, endVariables), metrics.telemetry.expression(place))
}

function compileSample(
  value: boolean | number | string,
  place: string,
  { random, metrics }: CompileContext,
): Sample {
  if (typeof value !== 'string') return constantSample(value, random)
  const constant = constantOf(value)
  if (typeof constant === 'boolean' || typeof constant === 'number') return constantSample(constant, random)
  const program = compileCheckedCel(value, samplingVariables)
  return evaluatedSample(telemetryExpression(program, metrics.telemetry.expression(place)), random)
}

/** Resource attributes: those of the environment replace ours, those of the configuration both. */
export function resourceOf(
  expressions: Readonly<Record<string, string>>,
  { version, instance, resource }: ProcessIdentity,
): Attribute[] {
  const attributes = new Map<string, Attribute[1]>([
    ['service.name', 'tollgate'],
    ['service.version', version],
    ['service.instance.id', instance],
    ...resource,
  ])
  for (const [name, source] of Object.entries(expressions)) {
    const value = attributeValue(constantOf(source))
    if (value !== undefined) attributes.set(name, value)
  }
  return [...attributes]
}

type ExporterSource = {
  signal: Signal
  collector: CollectorConfig
  resource: readonly Attribute[]
  identity: ProcessIdentity
}

/** The queue of a signal for a collector. It survives reloads that change neither. */
export function exporterOf(
  { signal, collector: config, resource, identity }: ExporterSource,
  context: CompileContext,
): Exporter {
  const { clock, random, log, metrics, exporters } = context
  const collector = compileCollector(config, signal, context)
  const settings = createHash('sha256')
    .update(JSON.stringify([config, resource, collector.backend]))
    .digest('base64url')
  return context.retained(`telemetry ${signal} ${settings}`, () => {
    const exporter = createExporter({
      encode: batchEncoder({ resource, scope: { name: 'tollgate', version: identity.version } }),
      send: collector.send,
      meter: metrics.telemetry.exports(signal),
      ...{ clock, random, log },
      fields: { signal, collector: collector.address },
    })
    exporters.track(exporter)
    return exporter
  })
}
