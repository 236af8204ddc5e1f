import { withSharedWorkBudget } from '../../cel/work-budget.ts'
import type { Delivery } from '../../net/http/incoming-request.ts'
import { type Attribute, encodeLogRecord } from '../../telemetry/otlp/encode.ts'
import type { Exporter } from '../../telemetry/otlp/exporter.ts'
import { accessFields } from '../access-log.ts'
import type { Exchange } from '../exchange.ts'
import { variablesAtEnd, withoutCredentials } from './end-variables.ts'
import { admits, attributeValue, type TelemetryExpression } from './expressions.ts'
import type { TelemetryField } from './telemetry-fields.ts'

/** Selection and fields of access log lines. */
export type AccessLogRules = {
  readonly filter: TelemetryExpression | undefined
  readonly added: readonly TelemetryField[]
  /** Names of fields; includes those of added fields. */
  readonly removed: ReadonlySet<string>
}

/** The access log of a configuration. */
export type ConfiguredAccessLog = {
  /** Returns the line of a request, or undefined if the filter does not admit it; exports its record. */
  line(exchange: Exchange, delivery: Delivery, at: AccessTimes): string | undefined
}

/** `time` is the timestamp of the line, `endedAt` is `Clock.monotonic()`. */
export type AccessTimes = { readonly time: string; readonly endedAt: number }

export type AccessLogOptions = {
  /** Names of headers whose values are hashed, in lower case. */
  readonly sensitive: ReadonlySet<string>
  readonly rules: AccessLogRules
  /** Export over OTLP; undefined without one. Its filter applies in addition to none of `rules`. */
  readonly otlp: (AccessLogRules & { readonly exporter: Pick<Exporter, 'add'> }) | undefined
}

/** Fields of every line. They are not removed, because readers of the log depend on them. */
const fixedFields: ReadonlySet<string> = new Set(['level', 'time', 'msg'])

/** Creates the access log of a configuration. */
export function createAccessLog({ rules, otlp, sensitive }: AccessLogOptions): ConfiguredAccessLog {
  return {
    line: (exchange, delivery, { time, endedAt }) =>
      // The filters are evaluated first, so that fields do not exhaust their work limit.
      withSharedWorkBudget(() => {
        const variables = variablesAtEnd(exchange, delivery)
        const isWritten = admits(rules.filter, variables)
        const isExported = otlp !== undefined && admits(otlp.filter, variables)
        if (!isWritten && !isExported) return undefined
        const fields = accessFields(exchange, delivery, time, endedAt)
        const values = withoutCredentials(variables, sensitive)
        if (isExported) otlp.exporter.add(recordOf(exchange, changed(fields, otlp, values), time))
        return isWritten ? `${JSON.stringify(changed(fields, rules, values))}\n` : undefined
      }),
  }
}

function changed(
  fields: Readonly<Record<string, unknown>>,
  { added, removed }: AccessLogRules,
  variables: object,
): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const name in fields) if (!removed.has(name) || fixedFields.has(name)) result[name] = fields[name]
  for (const field of added) {
    field.evaluate(variables, (name, value) => {
      if (!fixedFields.has(name)) result[name] = plainValue(value)
    })
  }
  return result
}

/** Values of JSON; large texts and lists are bounded as in attributes. */
function plainValue(value: unknown): unknown {
  if (value === undefined) return null
  return typeof value === 'object' ? (value === null ? null : boundedObject(value)) : attributeValue(value)
}

/** Longest JSON text of a value. */
const maxObjectLength = 16 * 1024

function boundedObject(value: object): unknown {
  const text = JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? String(item) : item))
  return text.length > maxObjectLength ? `${text.slice(0, maxObjectLength)}…` : JSON.parse(text)
}

function recordOf({ trace }: Exchange, fields: Readonly<Record<string, unknown>>, time: string): Uint8Array {
  const attributes: Attribute[] = []
  for (const [name, value] of Object.entries(fields)) {
    if (fixedFields.has(name)) continue
    const attribute = attributeValue(JSON.isRawJSON(value) ? Number(JSON.stringify(value)) : value)
    if (attribute !== undefined) attributes.push([name, attribute])
  }
  const isSampled = trace?.isSampled === true
  return encodeLogRecord({
    at: Date.parse(time),
    body: 'request',
    attributes,
    traceId: isSampled ? trace.context.traceId : undefined,
    spanId: isSampled ? trace.context.spanId : undefined,
  })
}
